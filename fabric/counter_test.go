package fabric_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// within is a context for as long as something may take.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func openCounter(t *testing.T, d *fabric.Domain) *fabric.Counter {
	t.Helper()
	c, err := d.OpenCounter()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// reading is what a counter has counted.
func reading(t *testing.T, c *fabric.Counter) [2]uint64 {
	t.Helper()
	n, err := c.Read()
	require.NoError(t, err)
	e, err := c.Errors()
	require.NoError(t, err)
	return [2]uint64{n, e}
}

func TestCounterByHand(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		c := openCounter(t, s.domain)
		require.ErrorIs(t, s.domain.Close(), fabric.ErrBusy)
		require.Equal(t, [2]uint64{}, reading(t, c))
		require.NoError(t, c.Wait(t.Context(), 0))
		require.NoError(t, c.Add(5))
		require.NoError(t, c.Add(2))
		require.Equal(t, [2]uint64{7, 0}, reading(t, c))
		require.NoError(t, c.Wait(t.Context(), 7))
		require.NoError(t, c.Set(3))
		require.NoError(t, c.AddErrors(2))
		require.Equal(t, [2]uint64{3, 2}, reading(t, c))
		require.NoError(t, c.SetErrors(0))
		require.Equal(t, [2]uint64{3, 0}, reading(t, c))
	})
}

// Each kind of event has its counter, on both sides.
func TestCountersOfAnEndpoint(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		hints := rmaHints(provider)
		hints.Capabilities |= fabric.RemoteMemoryEvents
		if provider == "tcp" {
			// tcp;ofi_rxm has no events of remote access, and tcp in 2.1, which says
			// that it has, does not count them.
			hints.Capabilities &^= fabric.RemoteMemoryEvents
		}
		s := openDomain(t, hints)
		open := func() (*fabric.Counter, *fabric.Counter) { return openCounter(t, s.domain), openCounter(t, s.domain) }
		sent, _ := open()
		written, read := open()
		received, remote := open()
		forB := []fabric.CounterBinding{{Counter: received, Events: fabric.CountReceives}}
		events := hints.Capabilities&fabric.RemoteMemoryEvents != 0
		if events {
			forB = append(forB, fabric.CounterBinding{Counter: remote, Events: fabric.CountRemoteWrites})
		}
		s.enable(t, []fabric.CounterBinding{
			{Counter: sent, Events: fabric.CountSends},
			{Counter: written, Events: fabric.CountWrites},
			{Counter: read, Events: fabric.CountReads},
		}, forB)
		require.ErrorIs(t, sent.Close(), fabric.ErrBusy)

		for range 3 {
			s.b.must(t, s.a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)})
			s.a.must(t, s.b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.a.peer, Tag: 1, Buf: make([]byte, 8)})
			require.NoError(t, s.a.await(t, s.b).Err)
			require.NoError(t, s.b.await(t, s.a).Err)
		}
		r := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessAll}, arena(t, 4096).Bytes())
		for range 2 {
			s.a.must(t, s.b, fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: counting(8), Remote: at(t, r, 0, 8), Flags: fabric.DeliveryComplete})
			require.NoError(t, s.a.await(t, s.b).Err)
		}
		s.a.must(t, s.b, fabric.Op{Kind: fabric.OpRead, Peer: s.a.peer, Buf: make([]byte, 8), Remote: at(t, r, 0, 8)})
		require.NoError(t, s.a.await(t, s.b).Err)
		ctx := within(t, 30*time.Second)
		require.NoError(t, sent.Wait(ctx, 3))
		require.NoError(t, received.Wait(ctx, 3))
		require.NoError(t, written.Wait(ctx, 2))
		require.NoError(t, read.Wait(ctx, 1))
		require.Equal(t, [2]uint64{3, 0}, reading(t, sent))
		require.Equal(t, [2]uint64{2, 0}, reading(t, written))
		require.Equal(t, [2]uint64{1, 0}, reading(t, read))
		require.Equal(t, [2]uint64{3, 0}, reading(t, received))
		if events {
			require.NoError(t, remote.Wait(ctx, 2))
			require.Equal(t, [2]uint64{2, 0}, reading(t, remote))
		}
	})
}

func TestCounterBindingsThatCannotBe(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s, other := openDomain(t, rmaHints(provider)), openDomain(t, rmaHints(provider))
		c, strange := openCounter(t, s.domain), openCounter(t, other.domain)
		q, err := s.domain.OpenCompletionQueue(16)
		require.NoError(t, err)
		v, err := s.domain.OpenAddressVector()
		require.NoError(t, err)
		for _, b := range []fabric.CounterBinding{{}, {Counter: c}, {Counter: c, Events: 1 << 60}, {Counter: strange, Events: fabric.CountSends}} {
			e, err := s.domain.OpenEndpoint()
			require.NoError(t, err)
			err = e.EnableWith(fabric.Bindings{Vector: v, Send: q, Receive: q, Events: s.events, Counters: []fabric.CounterBinding{b}})
			require.ErrorIs(t, err, fabric.ErrInvalid)
			require.NoError(t, e.Close())
		}
		require.NoError(t, q.Close())
		require.NoError(t, v.Close())
	})
}

// An operation that fails ends a wait, once. Of the providers here only sockets
// counts failures; elsewhere it is done by hand.
func TestCounterOfFailures(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		c := openCounter(t, s.domain)
		if provider == "sockets" {
			s.enable(t, []fabric.CounterBinding{{Counter: c, Events: fabric.CountWrites}}, nil)
			r := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessAll}, arena(t, 4096).Bytes())
			where := at(t, r, 0, 8)
			where.Key += 1000
			s.a.must(t, s.b, fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: counting(8), Remote: where})
			require.Error(t, s.a.await(t, s.b).Err)
		} else {
			require.NoError(t, c.AddErrors(1))
		}
		err := c.Wait(within(t, 30*time.Second), 1)
		var e *fabric.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "1 counted operations have failed", e.Detail)
		require.ErrorIs(t, c.Wait(within(t, 20*time.Millisecond), 1), context.DeadlineExceeded, "what was told is not told again")
		require.NoError(t, c.AddErrors(1))
		require.Equal(t, [2]uint64{0, 2}, reading(t, c))
		require.ErrorIs(t, c.Wait(within(t, 20*time.Millisecond), 1), context.DeadlineExceeded, "nor what was read")
		require.ErrorIs(t, c.Wait(within(t, time.Nanosecond), 1), context.DeadlineExceeded)
		require.NoError(t, c.AddErrors(1))
		require.ErrorAs(t, c.Wait(t.Context(), 0), &e)
		require.NotErrorIs(t, e, syscall.ETIMEDOUT)
	})
}

func TestCounterWaitEnds(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		hints := rmaHints(provider)
		s := openDomain(t, hints)
		wait := func(ctx context.Context, c *fabric.Counter) chan error {
			ended := make(chan error, 1)
			started := make(chan struct{})
			go func() {
				close(started)
				ended <- c.Wait(ctx, 2)
			}()
			<-started
			return ended
		}
		t.Run("by Add", func(t *testing.T) {
			c := openCounter(t, s.domain)
			ended := wait(t.Context(), c)
			require.NoError(t, c.Add(1))
			require.NoError(t, c.Add(1))
			require.NoError(t, <-ended)
		})
		t.Run("by the context", func(t *testing.T) {
			c := openCounter(t, s.domain)
			ctx, cancel := context.WithCancel(t.Context())
			ended := wait(ctx, c)
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
		})
		t.Run("by Close", func(t *testing.T) {
			c, err := s.domain.OpenCounter()
			require.NoError(t, err)
			ended := wait(context.Background(), c)
			require.NoError(t, c.Close())
			require.ErrorIs(t, <-ended, net.ErrClosed)
			require.NoError(t, c.Close())
			for _, call := range []func() error{
				func() error { return c.Add(1) }, func() error { return c.Set(1) },
				func() error { return c.AddErrors(1) }, func() error { return c.SetErrors(1) },
				func() error { _, err := c.Read(); return err }, func() error { _, err := c.Errors(); return err },
				func() error { return c.Wait(context.Background(), 0) },
			} {
				require.ErrorIs(t, call(), net.ErrClosed)
			}
		})
	})
}
