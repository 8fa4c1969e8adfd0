package efa

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// Each way ends on its own: after CloseWrite the peer reads to io.EOF, and
// writes on.
func TestCloseWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		const count = 100
		buf := make([]byte, 20000)
		for i := range count {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, i*200), nil))
		}
		require.NoError(t, dialed.CloseWrite())
		require.NoError(t, dialed.CloseWrite(), "twice")
		require.ErrorIs(t, dialed.WriteMessage(ctx, nil), net.ErrClosed)
		for i := range count {
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, i*200), buf[:n]), "message %d", i)
		}
		for range 2 {
			_, err := accepted.ReadMessage(ctx, buf)
			require.Equal(t, io.EOF, err)
		}

		// More than a window, so that credit comes the other way meanwhile.
		written := make(chan error)
		go func() {
			var err error
			for i := range 3 * count {
				err = errors.Join(err, accepted.WriteMessage(ctx, message(2, i, i*50)))
			}
			written <- errors.Join(err, accepted.CloseWrite())
		}()
		for i := range 3 * count {
			n, err := dialed.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(2, i, i*50), buf[:n]), "answer %d", i)
		}
		require.NoError(t, <-written)
		_, err := dialed.ReadMessage(ctx, buf)
		require.Equal(t, io.EOF, err)

		closeBoth(t, dialed, accepted)
		require.ErrorIs(t, dialed.CloseWrite(), net.ErrClosed)
		require.NoError(t, dialed.failure, "the end was orderly")
		require.NoError(t, accepted.failure)
	})
}

// Writes that wait for the reader are sent before the end, which comes behind
// them.
func TestCloseWriteWithWaitingWrites(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4})
		ctx := deadline(t)
		const count = 30
		for i := range count {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, i*300), func(err error) {
				if err != nil {
					t.Errorf("write %d: %v", i, err)
				}
			}))
		}
		// The last in line is one that gives up.
		short, cancel := context.WithCancel(ctx)
		gaveUp := make(chan error)
		go func() { gaveUp <- dialed.WriteMessage(short, message(1, count, 10)) }()
		waiting := func() (n int) {
			dialed.reactor.do(func() { n = dialed.waiting.length })
			return n
		}
		require.Eventually(t, func() bool { return waiting() == count-4+1 }, patience, time.Millisecond)
		require.NoError(t, dialed.CloseWrite())
		cancel()
		require.ErrorIs(t, <-gaveUp, context.Canceled)
		buf := make([]byte, count*300)
		for i := range count {
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, i*300), buf[:n]))
		}
		_, err := accepted.ReadMessage(ctx, buf)
		require.Equal(t, io.EOF, err)
		closeBoth(t, dialed, accepted)
	})
}

// Whoever closes first, and whether or not the other has ended its writing, the
// end is orderly and nothing that was written is lost.
func TestCloseAfterCloseWrite(t *testing.T) {
	type ends struct{ first, second *Conn }
	for _, c := range []struct {
		name string
		do   func(t *testing.T, e ends)
	}{
		{"the one that ended its writing", func(t *testing.T, e ends) {
			require.NoError(t, e.first.CloseWrite())
			require.NoError(t, e.first.Close())
			require.ErrorIs(t, e.second.WriteMessage(deadline(t), nil), ErrPeerClosed)
			require.NoError(t, e.second.Close())
		}},
		{"the other one", func(t *testing.T, e ends) {
			require.NoError(t, e.first.CloseWrite())
			require.NoError(t, e.second.Close())
			require.NoError(t, e.first.Close())
		}},
		{"one after both have ended theirs", func(t *testing.T, e ends) {
			require.NoError(t, e.first.CloseWrite())
			require.NoError(t, e.second.CloseWrite())
			require.NoError(t, e.first.Close())
			require.NoError(t, e.second.Close())
		}},
		{"both at once", func(t *testing.T, e ends) {
			require.NoError(t, e.first.CloseWrite())
			require.NoError(t, e.second.CloseWrite())
			closeBoth(t, e.first, e.second)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bed) {
				from, to := b.open(t, Config{}), b.open(t, Config{})
				dialed, accepted := join(t, from, to)
				for i := range 20 {
					for _, c := range []*Conn{dialed, accepted} {
						require.NoError(t, c.WriteMessageAsync(message(1, i, i*3000), func(err error) {
							if err != nil {
								t.Error(err)
							}
						}))
					}
				}
				c.do(t, ends{dialed, accepted})
				require.NoError(t, dialed.failure)
				require.NoError(t, accepted.failure)
				requireLetGo(t, from, to)
			})
		})
	}
}

// A peer that only ended its writing is no longer there to be written to when
// it dies: that is not the orderly end.
func TestPeerLostAfterCloseWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		require.NoError(t, dialed.WriteMessage(ctx, message(1, 0, 100)))
		require.NoError(t, dialed.CloseWrite())
		buf := make([]byte, 100)
		n, err := accepted.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, 100, n)
		_, err = accepted.ReadMessage(ctx, buf)
		require.Equal(t, io.EOF, err)
		require.NoError(t, accepted.WriteMessage(ctx, buf))
		require.NoError(t, dialed.CloseNow())
		require.Eventually(t, func() bool {
			return errors.Is(accepted.WriteMessage(ctx, buf), ErrPeerLost)
		}, patience, time.Millisecond)
		require.Error(t, accepted.Close(), "what was written is lost")
	})
}

// Close after CloseWrite does not wait for ever for a peer that answers nothing,
// and then says so.
func TestCloseWriteDrainTimeout(t *testing.T) {
	b := newBed(t, settings[0])
	dialed, accepted := b.connect(t, Config{DrainTimeout: 50 * time.Millisecond})
	ctx := deadline(t)
	from, to := dialed.reactor.device.(*fabrictest.Device), accepted.reactor.device.(*fabrictest.Device)
	b.Network.Partition(from, to)
	require.NoError(t, dialed.WriteMessage(ctx, message(1, 0, 10)))
	require.NoError(t, dialed.CloseWrite())
	require.ErrorIs(t, dialed.Close(), os.ErrDeadlineExceeded)
	b.Network.Heal(from, to)
	// The message may have been on its way, and then it is there.
	var err error
	for err == nil {
		_, err = accepted.ReadMessage(ctx, make([]byte, 10))
	}
	require.NoError(t, ctx.Err())
	require.NoError(t, accepted.Close())
}

// A peer that says two different ends is not to be believed in either.
func TestTwoEnds(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		dialed.control.send(frameWritten, 1)
		dialed.control.send(frameFinish, 2)
		_, err := accepted.ReadMessage(deadline(t), make([]byte, 10))
		require.ErrorIs(t, err, ErrProtocol)
		require.NoError(t, accepted.Close())
		require.NoError(t, dialed.CloseNow())
	})
}
