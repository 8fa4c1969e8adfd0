package fabric_test

import (
	"context"
	"errors"
	"math"
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

func TestCounterBindingsThatCannotBe(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s, other := openDomain(t, rmaHints(provider)), openDomain(t, rmaHints(provider))
		c, strange := openCounter(t, s.domain), openCounter(t, other.domain)
		q, err := s.domain.OpenCompletionQueue(16)
		require.NoError(t, err)
		sends := fabric.CounterBinding{Counter: c, Events: fabric.CountSends}
		for _, b := range [][]fabric.CounterBinding{
			{{}},
			{{Counter: c}},
			{{Counter: c, Events: 1 << 60}},
			{{Counter: strange, Events: fabric.CountSends}},
			// After these, sockets never let go of the counter.
			{sends, sends},
			{sends, {Counter: c, Events: fabric.CountReceives}, {Counter: c, Events: fabric.CountSends | fabric.CountWrites}},
		} {
			// On efa, a vector was for one endpoint.
			v, err := s.domain.OpenAddressVector()
			require.NoError(t, err)
			e, err := s.domain.OpenEndpoint()
			require.NoError(t, err)
			err = e.EnableWith(fabric.Bindings{Vector: v, Send: q, Receive: q, Events: s.events, Counters: b})
			require.ErrorIs(t, err, fabric.ErrInvalid)
			require.NoError(t, e.Close())
			require.NoError(t, v.Close())
		}
		require.NoError(t, q.Close())
	})
}

// A counter has the number that it was given, or says that it does not count so far.
func TestCounterOfLargeNumbers(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		c := openCounter(t, s.domain)
		for _, n := range []uint64{math.MaxInt32, math.MaxInt32 + 1, 1 << 40, math.MaxUint64} {
			if n > math.MaxInt32 && provider == "sockets" {
				before := reading(t, c)
				for _, change := range []func(uint64) error{c.Set, c.Add, c.SetErrors, c.AddErrors} {
					require.ErrorIs(t, change(n), fabric.ErrInvalid)
				}
				require.ErrorIs(t, c.Wait(within(t, time.Second), n), fabric.ErrInvalid)
				require.Equal(t, before, reading(t, c))
				continue
			}
			require.NoError(t, c.Set(n))
			require.NoError(t, c.SetErrors(n))
			require.Equal(t, [2]uint64{n, n}, reading(t, c))
			require.NoError(t, c.Wait(within(t, time.Second), n))
		}
	})
}

// A failure ends a wait, once.
func TestCounterOfFailures(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		c := openCounter(t, s.domain)
		require.NoError(t, c.AddErrors(1))
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

// Whether or not several threads use the domain: efa of 2.x has a lock only then, which a counter
// that blocks waits for while it has it.
func TestCounterWaitEnds(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for name, threading := range map[string]fabric.Threading{"of one thread": fabric.ThreadDomain, "of several threads": fabric.ThreadSafe} {
			t.Run(name, func(t *testing.T) {
				hints := rmaHints(provider)
				hints.Threading = threading
				counterWaitEnds(t, openDomain(t, hints))
			})
		}
	})
}

func counterWaitEnds(t *testing.T, s *site) {
	t.Helper()
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
	t.Run("by the time", func(t *testing.T) {
		// It blocks, in slices.
		require.ErrorIs(t, <-wait(within(t, 100*time.Millisecond), openCounter(t, s.domain)), context.DeadlineExceeded)
	})
	t.Run("by the context", func(t *testing.T) {
		c := openCounter(t, s.domain)
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := wait(ctx, c)
		why := errors.New("the program ends")
		cancel(why)
		require.Equal(t, why, <-ended)
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
}
