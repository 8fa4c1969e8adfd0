package fabric_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

type happening struct {
	event fabric.Event
	err   error
}

func (x *exchangeOffice) listen(t *testing.T) (p *fabric.PassiveEndpoint, address []byte) {
	t.Helper()
	p, err := x.fabric.OpenPassiveEndpoint(x.info)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	require.NoError(t, p.Listen(x.events))
	address, err = p.Name()
	require.NoError(t, err)
	return p, address
}

// caller opens an endpoint that can connect.
func (x *exchangeOffice) caller(t *testing.T) *party {
	t.Helper()
	e, err := x.domain.OpenEndpoint()
	require.NoError(t, err)
	return x.enable(t, e)
}

func (x *exchangeOffice) answer(t *testing.T, r *fabric.ConnectionRequest) *party {
	t.Helper()
	e, err := r.OpenEndpoint(x.domain)
	require.NoError(t, err)
	return x.enable(t, e)
}

func (x *exchangeOffice) enable(t *testing.T, e *fabric.Endpoint) *party {
	t.Helper()
	q := x.queue
	if q == nil {
		q = queueOf(t, x.domain, 64)
	}
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, e.EnableWith(fabric.Bindings{Send: q, Receive: q, Events: x.events}))
	return newParty(e, q)
}

// await returns the first event that fits, and keeps the others.
func (x *exchangeOffice) await(t *testing.T, what string, fits func(happening) bool) happening {
	t.Helper()
	for i, h := range x.got {
		if fits(h) {
			x.got = append(x.got[:i:i], x.got[i+1:]...)
			return h
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		event, err := x.events.ReadWait(ctx)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "no %s", what)
		h := happening{event, err}
		if fits(h) {
			return h
		}
		x.got = append(x.got, h)
	}
}

func (x *exchangeOffice) request(t *testing.T) *fabric.ConnectionRequest {
	t.Helper()
	h := x.await(t, "connection request", func(h happening) bool { _, ok := h.event.(*fabric.ConnectionRequest); return ok })
	return h.event.(*fabric.ConnectionRequest)
}

func (x *exchangeOffice) connected(t *testing.T, p *party) fabric.ConnectedEvent {
	t.Helper()
	h := x.await(t, "connected event", func(h happening) bool {
		c, ok := h.event.(fabric.ConnectedEvent)
		return ok && c.Endpoint == p.e
	})
	return h.event.(fabric.ConnectedEvent)
}

// couple connects two endpoints.
func (x *exchangeOffice) couple(t *testing.T) (a, b *party) {
	t.Helper()
	_, address := x.listen(t)
	a = x.caller(t)
	require.NoError(t, a.e.Connect(address, nil))
	b = x.answer(t, x.request(t))
	require.NoError(t, b.e.Accept(nil))
	x.connected(t, a)
	x.connected(t, b)
	return a, b
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

// descriptors is the number of file descriptors that the process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
