package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// corner opens what an endpoint needs beside itself, of an info.
type corner struct {
	fabric *fabric.Fabric
	domain *fabric.Domain
	events *fabric.EventQueue
}

func openCorner(t *testing.T, info *fabric.Info) *corner {
	t.Helper()
	x := openOffice(t, info)
	return &corner{x.fabric, x.domain, x.events}
}

func (c *corner) queue(t *testing.T) *fabric.CompletionQueue {
	t.Helper()
	return queueOf(t, c.domain, 64)
}

func (c *corner) vector(t *testing.T, config fabric.AddressVectorConfig) *fabric.AddressVector {
	t.Helper()
	v, err := c.domain.OpenAddressVectorConfig(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	return v
}

// endpoint opens one and enables it with what the bindings leave out.
func (c *corner) endpoint(t *testing.T, info *fabric.Info, b fabric.Bindings) (*party, *fabric.AddressVector) {
	t.Helper()
	if b.Vector == nil {
		b.Vector = c.vector(t, fabric.AddressVectorConfig{})
	}
	if b.Send == nil {
		b.Send = c.queue(t)
	}
	if b.Receive == nil {
		b.Receive = b.Send
	}
	e, err := c.domain.OpenEndpointFor(info)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.EnableWith(b))
	return newParty(e, b.Send), b.Vector
}

func insert(t *testing.T, v *fabric.AddressVector, e interface{ Name() ([]byte, error) }) fabric.Address {
	t.Helper()
	name, err := e.Name()
	require.NoError(t, err)
	peer, err := v.Insert(name)
	require.NoError(t, err)
	return peer
}

// party is an endpoint, or a part of one, and where its sends complete.
type party struct {
	turner
	e *fabric.Endpoint
	q *fabric.CompletionQueue
}

type turner interface {
	Turn(posts []fabric.Op, completions []fabric.Completion, spins int) (int, error)
	TurnWait(posts []fabric.Op, completions []fabric.Completion, waitMS int) (int, error)
}

func newParty(e *fabric.Endpoint, q *fabric.CompletionQueue) *party {
	return &party{turner: e, e: e, q: q}
}

func datagramsFor(t *testing.T, provider string, caps fabric.Capabilities) *fabric.Info {
	t.Helper()
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: caps, MemoryMode: everyMemoryMode,
		// Which efa-direct has not, whose buffers must all be registered.
		OrderedSends: true,
	}
	hints.Source = sourceOn(provider)
	infos, err := fabric.Discover(hints)
	testenv.Need(t, provider+" with "+caps.String(), err)
	return infos[0]
}
