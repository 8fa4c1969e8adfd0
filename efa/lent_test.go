package efa

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is in a buffer arrives, and the buffer comes back when the device is done.
func TestWriteBuffer(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 8})
		for i, size := range []int{0, 1, 4000, 5000, 100_000, 1 << 20} {
			buffer, err := dialed.Buffer(size)
			require.NoError(t, err)
			require.Len(t, buffer.Bytes(), size)
			copy(buffer.Bytes(), message(1, i, size))
			require.NoError(t, dialed.WriteBuffer(deadline(t), buffer))
			accepted.expect(t, 1, i, 1, size)
		}
		require.Eventually(t, func() bool { return dialed.reactor.lentOut() == 0 }, patience, 1e6)

		// One that is too long, one whose wait is given up, and one of another
		// reactor stay with the caller.
		sent := dialed.fillUp(t, 10)
		buffer, err := dialed.Buffer(5000)
		require.NoError(t, err)
		buffer.SetLen(20)
		require.Len(t, buffer.Bytes(), 20)
		copy(buffer.Bytes(), message(1, sent, 20))
		ctx, cancel := context.WithCancel(t.Context())
		written := make(chan error, 1)
		go func() { written <- dialed.WriteBuffer(ctx, buffer) }()
		require.Eventually(t, func() bool {
			waiting := 0
			dialed.reactor.do(func() { waiting = dialed.waiting.length })
			return waiting == 1
		}, patience, 1e6)
		cancel()
		require.ErrorIs(t, <-written, context.Canceled)
		var foreign *BufferError
		require.ErrorAs(t, accepted.WriteBuffer(t.Context(), buffer), &foreign)
		require.True(t, foreign.Foreign)
		accepted.expect(t, 1, 0, sent, 10)
		require.NoError(t, dialed.WriteBuffer(deadline(t), buffer))
		accepted.expect(t, 1, sent, 1, 20)

		buffer, err = dialed.Buffer(10)
		require.NoError(t, err)
		closeBoth(t, dialed, accepted)
		require.ErrorIs(t, dialed.WriteBuffer(deadline(t), buffer), net.ErrClosed)
		buffer.Release()
		require.Eventually(t, func() bool { return dialed.reactor.lentOut() == 0 }, patience, 1e6)
	})
}

func (r *Reactor) lentOut() int64 {
	r.lent.mu.Lock()
	defer r.lent.mu.Unlock()
	return r.lent.out
}

// Buffers are bounded, and outlive their reactor.
func TestBufferLimits(t *testing.T) {
	b := newBed(t, settings[0])
	r := b.open(t, Config{MaxBufferBytes: 10_000})
	first, err := r.Buffer(1)
	require.NoError(t, err)
	second, err := r.Buffer(4096)
	require.NoError(t, err)
	_, err = r.Buffer(1)
	var full *BufferError
	require.ErrorAs(t, err, &full)
	require.Equal(t, BufferError{Size: 1, Out: 8192, Limit: 10_000}, *full)
	require.ErrorIs(t, err, ErrWouldBlock)
	_, err = r.Buffer(-1)
	require.ErrorAs(t, err, &full)
	// Never, and not later: as 16 KiB it is more than all.
	_, err = r.Buffer(9000)
	require.ErrorAs(t, err, &full)
	require.NotErrorIs(t, err, ErrWouldBlock)
	_, err = r.Buffer(1 << 62)
	require.ErrorAs(t, err, &full)
	require.NotErrorIs(t, err, ErrWouldBlock)
	second.Release()
	again, err := r.Buffer(3000)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = r.Buffer(1)
	require.ErrorIs(t, err, net.ErrClosed)
	clear(first.Bytes())
	first.Release()
	again.Release()
}

// What waits or is in the device when the connection ends comes back too, with the
// device at the latest.
func TestBuffersComeBackFromTheDead(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4})
		results := make(chan error, 10)
		for range 10 {
			buffer, err := dialed.Buffer(100_000)
			require.NoError(t, err)
			go func() {
				err := dialed.WriteBuffer(context.Background(), buffer)
				if err != nil {
					buffer.Release()
				}
				results <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-results)
		}
		require.NoError(t, accepted.CloseNow())
		for range 7 {
			if err := <-results; err != nil {
				require.ErrorIs(t, err, ErrPeerLost)
			}
		}
		_ = dialed.Close()
		// On shm the device lets go of what was meant for the dead only when it is
		// closed.
		require.NoError(t, dialed.reactor.Close())
		require.Zero(t, dialed.reactor.lentOut())
	})
}

// A buffer that was given back or written is not its former owner's any more.
func TestBufferIsUsedOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		released, err := dialed.Buffer(5000)
		require.NoError(t, err)
		released.Release()
		released.Release()
		written, err := dialed.Buffer(5000)
		require.NoError(t, err)
		copy(written.Bytes(), message(1, 0, 5000))
		// It is under way until this.
		held, release := make(chan struct{}), make(chan struct{})
		go dialed.reactor.do(func() { close(held); <-release })
		<-held
		first := make(chan error, 1)
		go func() { first <- dialed.WriteBuffer(deadline(t), written) }()
		require.Eventually(t, func() bool { return !written.taken.Load() }, patience, time.Millisecond)
		written.Release()
		var gone *BufferError
		require.ErrorAs(t, dialed.WriteBuffer(deadline(t), written), &gone)
		require.True(t, gone.Gone)
		require.NotErrorIs(t, error(gone), ErrWouldBlock)
		close(release)
		require.NoError(t, <-first)
		accepted.expect(t, 1, 0, 1, 5000)
		// Nobody gets the same one twice.
		got := map[*Buffer]bool{}
		for range 100 {
			buffer, err := dialed.Buffer(5000)
			require.NoError(t, err)
			require.False(t, got[buffer])
			got[buffer] = true
		}
		for buffer := range got {
			buffer.Release()
		}
		require.Eventually(t, func() bool { return dialed.reactor.lentOut() == 0 }, patience, time.Millisecond)
		closeBoth(t, dialed, accepted)
	})
}
