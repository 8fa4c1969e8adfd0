package fabric_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// Every provider takes a queue for its domain, or says that it does not; the queue
// cannot be closed before the domain.
func TestBindEvents(t *testing.T) {
	names := append(testenv.Providers(), "udp", "net")
	for _, p := range names {
		t.Run(p, func(t *testing.T) {
			tried := 0
			for _, kind := range []fabric.EndpointType{fabric.ReliableDatagram, fabric.Connected, fabric.Datagram} {
				infos, err := fabric.Discover(fabric.Hints{
					Provider: p, Source: sourceOn(p), Endpoint: kind, MemoryMode: everyMemoryMode, Mode: fabric.MessagePrefix,
				})
				if err == nil {
					bindsEvents(t, infos[0])
					tried++
				}
			}
			if tried == 0 {
				testenv.Need(t, p, fabric.ErrNotFound)
			}
		})
	}
}

func bindsEvents(t *testing.T, info *fabric.Info) {
	t.Helper()
	f, err := info.OpenFabric()
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	q, err := f.OpenEventQueue()
	require.NoError(t, err)
	d, err := f.OpenDomain(info)
	require.NoError(t, err)
	require.ErrorIs(t, d.BindEvents(nil, 0), fabric.ErrInvalid)
	require.ErrorIs(t, d.BindEvents(q, 1), fabric.ErrInvalid)
	if err := d.BindEvents(q, fabric.RegistrationEvents); err == nil {
		r, err := d.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessMessages}, make([]byte, 100))
		require.NoError(t, err)
		event, ok, err := q.Read()
		require.NoError(t, err)
		if info.Provider() == "sockets" && fabric.LibraryVersion().Major >= 2 {
			require.False(t, ok, "sockets of libfabric 2 has events now: docs/PROVIDERS.md says that it has none")
		} else {
			require.True(t, ok)
			require.IsType(t, fabric.MRCompleteEvent{}, event)
		}
		require.NoError(t, r.Close())
	} else {
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		if err := d.BindEvents(q, 0); err != nil {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
			require.NoError(t, q.Close())
			require.NoError(t, d.Close())
			return
		}
	}
	require.ErrorIs(t, d.BindEvents(q, 0), fabric.ErrInvalid, "twice")
	err = q.Close()
	require.ErrorIs(t, err, fabric.ErrBusy)
	require.ErrorContains(t, err, "1 domain")
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.BindEvents(q, 0), net.ErrClosed)
	require.NoError(t, q.Close())
}

func TestBindEventsOfAnother(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		_, d := domainOf(t, provider, fabric.Messages)
		other, _ := domainOf(t, provider, fabric.Messages)
		require.ErrorIs(t, d.BindEvents(eventsOf(t, other), 0), fabric.ErrInvalid)
		closed := eventsOf(t, other)
		require.NoError(t, closed.Close())
		require.Error(t, d.BindEvents(closed, 0))
	})
}

// Connected endpoints without a queue of their own have their events in that of the
// domain, and cannot be without both.
func TestConnectOverEventsOfDomain(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		d, err := x.fabric.OpenDomain(x.info)
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		closing := func(e *fabric.Endpoint) { require.NoError(t, e.Close()) }
		q, err := d.OpenCompletionQueue(64)
		require.NoError(t, err)
		defer func() { require.NoError(t, q.Close()) }()
		without := fabric.Bindings{Send: q, Receive: q}
		caller, err := d.OpenEndpoint()
		require.NoError(t, err)
		defer closing(caller)
		require.ErrorIs(t, caller.EnableWith(without), fabric.ErrInvalid)
		require.NoError(t, d.BindEvents(x.events, 0))
		require.NoError(t, caller.EnableWith(without))

		_, address := x.listen(t)
		require.NoError(t, caller.Connect(address, nil))
		callee, err := x.request(t).OpenEndpoint(d)
		require.NoError(t, err)
		defer closing(callee)
		require.NoError(t, callee.EnableWith(without))
		require.NoError(t, callee.Accept(nil))
		for _, e := range []*fabric.Endpoint{caller, callee} {
			x.await(t, "connected event", func(h happening) bool {
				c, ok := h.event.(fabric.ConnectedEvent)
				return ok && c.Endpoint == e
			})
		}
		require.NoError(t, callee.Shutdown())
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		for ended := false; !ended; {
			_, err := caller.Turn(nil, make([]fabric.Completion, 8), 0)
			require.NoError(t, err)
			wait, cancel := context.WithTimeout(ctx, time.Millisecond)
			event, err := x.events.ReadWait(wait)
			cancel()
			require.NoError(t, ctx.Err())
			end, ok := event.(fabric.ShutdownEvent)
			var failure *fabric.ConnectionError
			ended = ok && end.Endpoint == caller || errors.As(err, &failure) && failure.Endpoint == caller
		}
	})
}
