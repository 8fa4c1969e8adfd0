package efa

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the device, its driver and callbacks did.
func TestStatsOfTurns(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		dialed, accepted := join(t, from, to)
		const count = 20
		ran := make(chan error, count)
		for i := range count {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, 10), func(err error) { ran <- err }))
		}
		accepted.expect(t, 1, 0, count, 10)
		for range count {
			require.NoError(t, <-ran)
		}
		// The last one has been called, and returns.
		require.Eventually(t, func() bool { return from.Stats().Callbacks == count }, patience, time.Millisecond)
		for _, r := range []*Reactor{from, to} {
			s := r.Stats()
			require.Positive(t, s.Posts)
			require.LessOrEqual(t, s.EmptyTurns, s.Turns)
			require.Greater(t, s.Crossings, s.Turns)
			require.LessOrEqual(t, s.Completions+s.Injected, s.Posts)
			require.LessOrEqual(t, s.IdleWakeUps, s.Waits)
			require.LessOrEqual(t, s.Follows, s.Parks)
			// Nobody is left who drives: the background waits, and is woken in vain.
			require.Eventually(t, func() bool {
				r.device.Wake()
				now := r.Stats()
				return now.Waits > s.Waits && now.IdleWakeUps > s.IdleWakeUps
			}, patience, time.Millisecond)
		}
		// A reader that has to wait parks.
		parks := to.Stats().Parks
		read := make(chan error, 1)
		go func() {
			_, err := accepted.ReadMessage(deadline(t), make([]byte, 10))
			read <- err
		}()
		require.Eventually(t, func() bool { return to.Stats().Parks > parks }, patience, time.Millisecond)
		require.NoError(t, dialed.WriteMessage(deadline(t), []byte("x")))
		require.NoError(t, <-read)
		closeBoth(t, dialed, accepted)
	})
}

// Callers that follow, and one that is woken to lead.
func TestStatsOfFollowers(t *testing.T) {
	a, b := newBed(t, plain).connect(t, Config{})
	r := b.reactor
	require.Eventually(t, r.lead, patience, time.Microsecond)
	read := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := b.ReadMessage(deadline(t), make([]byte, 1))
			read <- err
		}()
		require.Eventually(t, func() bool { return r.followers.count.Load() == int32(i+1) }, patience, time.Millisecond)
	}
	r.release()
	for range 2 {
		require.NoError(t, a.WriteMessage(deadline(t), []byte("x")))
		require.NoError(t, <-read)
	}
	s := r.Stats()
	require.GreaterOrEqual(t, s.Follows, uint64(2))
	require.GreaterOrEqual(t, s.HandOvers, uint64(1))
	closeBoth(t, a, b)
}
