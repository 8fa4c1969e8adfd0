package efa

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A remote flush ends when the peer has every message, though nobody has read
// one; what waits for credit is waited for.
func TestFlush(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 16})
		for _, scope := range []FlushScope{FlushLocal, FlushRemote} {
			require.NoError(t, dialed.Flush(deadline(t), scope), "of nothing")
		}
		for i := range 8 {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, i*3000), nil))
		}
		require.NoError(t, dialed.Flush(deadline(t), FlushRemote))
		received := uint64(0)
		accepted.reactor.do(func() { received = accepted.received })
		require.EqualValues(t, 8, received)
		require.NoError(t, dialed.Flush(deadline(t), FlushLocal))

		// More than the window: the flush waits for the reader.
		for i := 8; i < 40; i++ {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, 100), nil))
		}
		flushed := make(chan error, 1)
		require.NoError(t, dialed.FlushAsync(FlushRemote, NewCompletion(1, func(err error) { flushed <- err })))
		for i := range 8 {
			accepted.expect(t, 1, i, 1, i*3000)
		}
		accepted.expect(t, 1, 8, 32, 100)
		require.NoError(t, <-flushed)
		closeBoth(t, dialed, accepted)
		require.ErrorIs(t, dialed.Flush(deadline(t), FlushLocal), net.ErrClosed)
	})
}

// A flush of a peer that is gone, and one whose context ends, end with an error.
func TestFlushOfTheDead(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4})
		for i := range 10 {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, 100), nil))
		}
		ctx, cancel := context.WithCancel(t.Context())
		pending := make(chan error, 2)
		go func() { pending <- dialed.Flush(ctx, FlushLocal) }()
		go func() { pending <- dialed.Flush(deadline(t), FlushRemote) }()
		require.Eventually(t, func() bool {
			waiting := 0
			dialed.reactor.do(func() { waiting = dialed.waiting.length })
			return waiting >= 10-4+2
		}, patience, 1e6)
		cancel()
		require.ErrorIs(t, <-pending, context.Canceled)
		require.NoError(t, accepted.CloseNow())
		require.ErrorIs(t, <-pending, ErrPeerLost)
		require.ErrorIs(t, dialed.Flush(deadline(t), FlushRemote), ErrPeerLost)
		_ = dialed.Close()
	})
}

// A flush of the reactor waits for all of its connections.
func TestFlushReactor(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		require.NoError(t, from.Flush(deadline(t), FlushRemote), "without connections")
		var dialed, accepted []*Conn
		for range 5 {
			d, a := join(t, from, to)
			dialed, accepted = append(dialed, d), append(accepted, a)
		}
		for i, c := range dialed {
			require.NoError(t, c.WriteMessageAsync(message(1, i, 20_000), nil))
		}
		require.NoError(t, from.Flush(deadline(t), FlushRemote))
		received := make([]uint64, len(accepted))
		to.do(func() {
			for i, c := range accepted {
				received[i] = c.received
			}
		})
		require.Equal(t, []uint64{1, 1, 1, 1, 1}, received)
		for i := range dialed {
			accepted[i].expect(t, 1, i, 1, 20_000)
			closeBoth(t, dialed[i], accepted[i])
		}
	})
}

// A callback may flush, as it may write and close.
func TestFlushInCallback(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		flushed := make(chan error, 2)
		require.NoError(t, dialed.WriteMessageAsync(message(1, 0, 20_000), func(error) {
			flushed <- dialed.Flush(ctx, FlushRemote)
			flushed <- dialed.reactor.Flush(ctx, FlushRemote)
		}))
		_, err := accepted.ReadMessage(ctx, make([]byte, 20_000))
		require.NoError(t, err)
		require.NoError(t, <-flushed)
		require.NoError(t, <-flushed)
		closeBoth(t, dialed, accepted)
	})
}
