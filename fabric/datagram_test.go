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
	q, err := c.domain.OpenCompletionQueue(64)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
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

func datagramInfo(t *testing.T, provider string) *fabric.Info {
	t.Helper()
	infos, err := fabric.Discover(fabric.Hints{
		Provider: provider, Endpoint: fabric.Datagram, Capabilities: fabric.Messages | fabric.SourceAddress,
		MemoryMode: everyMemoryMode, Source: "127.0.0.1",
	})
	testenv.Need(t, provider, err)
	return infos[0]
}

func insert(t *testing.T, v *fabric.AddressVector, e interface{ Name() ([]byte, error) }) fabric.Address {
	t.Helper()
	name, err := e.Name()
	require.NoError(t, err)
	peer, err := v.Insert(name)
	require.NoError(t, err)
	return peer
}

func TestDatagrams(t *testing.T) {
	for _, provider := range []string{"udp", "sockets"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramInfo(t, provider)
			c := openCorner(t, info)
			a, va := c.endpoint(t, info, fabric.Bindings{})
			b, vb := c.endpoint(t, info, fabric.Bindings{})
			toB, toA := insert(t, va, b.e), insert(t, vb, a.e)
			for _, size := range []int{0, 1, 100, int(min(1400, info.MaxMessage()))} {
				sent, got := make([]byte, size), make([]byte, size+1)
				for i := range sent {
					sent[i] = byte(i)
				}
				// Received before it is sent: a datagram that nobody waits for
				// may be dropped.
				receive := []fabric.Op{{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}}
				b.turn(t, receive)
				require.Equal(t, fabric.Posted, receive[0].Result)
				fromA, fromB := carry(t, a, b, []fabric.Op{{Kind: fabric.OpSend, Peer: toB, Buf: sent}}, nil, 1, 1)
				require.NoError(t, fromA[0].Err)
				require.NoError(t, fromB[0].Err)
				require.Equal(t, size, fromB[0].Len)
				require.Equal(t, sent, got[:size])
				if fromB[0].Source != fabric.AddressAny {
					require.Equal(t, toA, fromB[0].Source)
				}
			}
			require.ErrorIs(t, a.e.Connect(make([]byte, 16), nil), fabric.ErrInvalid)
			require.ErrorIs(t, a.e.Shutdown(), fabric.ErrInvalid)
		})
	}
}

// A datagram endpoint can be given its address, and works without an event
// queue.
func TestSetName(t *testing.T) {
	for _, provider := range []string{"udp", "sockets"} {
		t.Run(provider, func(t *testing.T) {
			info := datagramInfo(t, provider)
			c := openCorner(t, info)
			e, err := c.domain.OpenEndpointFor(info)
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			require.ErrorIs(t, e.SetName([]byte{2, 0, 1}), fabric.ErrInvalid)
			want := []byte{2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
			testenv.Need(t, provider+" with setname", e.SetName(want))
			q, v := c.queue(t), c.vector(t, fabric.AddressVectorConfig{})
			require.NoError(t, e.EnableWith(fabric.Bindings{Vector: v, Send: q, Receive: q}))
			name, err := e.Name()
			require.NoError(t, err)
			require.Equal(t, want[4:8], name[4:8])
			require.NotZero(t, uint16(name[2])<<8|uint16(name[3]), "a port was chosen")
			require.NoError(t, e.Close())
		})
	}
}
