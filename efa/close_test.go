package efa

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who dials with a reactor that was closed hears so, whatever is there to dial.
func TestDialWithClosedReactor(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		r := b.open(t, Config{})
		require.NoError(t, r.Close())
		_, err := r.Dial(deadline(t), "127.0.0.1:1")
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// Messages written just before Close are read, and then io.EOF comes.
func TestCloseDelivers(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		const count = 20
		for i := range count {
			require.NoError(t, dialed.WriteMessage(ctx, message(1, i, 200*i)))
		}
		require.NoError(t, dialed.Close())
		require.NoError(t, dialed.Close(), "twice")
		require.ErrorIs(t, dialed.WriteMessage(ctx, nil), net.ErrClosed)
		_, err := dialed.ReadMessage(ctx, nil)
		require.ErrorIs(t, err, net.ErrClosed)
		buf := make([]byte, 4096)
		for i := range count {
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, 200*i), buf[:n]))
		}
		_, err = accepted.ReadMessage(ctx, buf)
		require.Equal(t, io.EOF, err)
		_, err = accepted.MessageSize(ctx)
		require.Equal(t, io.EOF, err)
		require.ErrorIs(t, accepted.WriteMessage(ctx, []byte("x")), ErrPeerClosed)
		require.NoError(t, accepted.Close())
	})
}

// Pending operations of both kinds and on both sides end with net.ErrClosed or
// with the peer's end, each exactly once, and nothing is left behind.
func TestCloseWithPendingOperations(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4})
		ctx := deadline(t)
		var ended sync.WaitGroup
		const count = 100
		results := make(chan error, count)
		for i := range count {
			require.NoError(t, dialed.WriteMessageAsync(message(1, i, 5000), func(err error) { results <- err }))
		}
		for range 3 {
			ended.Go(func() {
				_, err := dialed.ReadMessage(ctx, make([]byte, 10))
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("pending read: %v", err)
				}
			})
		}
		require.NoError(t, dialed.Close())
		ended.Wait()
		delivered := 0
		for range count {
			if err := <-results; err == nil {
				delivered++
			} else {
				require.ErrorIs(t, err, net.ErrClosed)
			}
		}
		require.Equal(t, 4, delivered, "the messages that there was credit for")
		buf := make([]byte, 5000)
		for i := range delivered {
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, 5000), buf[:n]))
		}
		_, err := accepted.ReadMessage(ctx, buf)
		require.Equal(t, io.EOF, err)
		require.NoError(t, accepted.Close())
	})
}

func TestCloseDuringCallback(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		closed := make(chan error, 1)
		require.NoError(t, dialed.WriteMessageAsync(message(1, 0, 100), func(err error) {
			closed <- errors.Join(err, dialed.Close())
		}))
		buf := make([]byte, 100)
		n, err := accepted.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, message(1, 0, 100), buf[:n])
		require.NoError(t, <-closed)
		require.NoError(t, accepted.Close())
	})
}

// Messages that nobody will read do not keep either side from closing.
func TestCloseWithUnreadMessages(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		for i := range 30 {
			for _, c := range []*Conn{dialed, accepted} {
				require.NoError(t, c.WriteMessageAsync(message(1, i, i*3000), func(err error) {
					if err != nil {
						t.Error(err)
					}
				}))
			}
		}
		closeBoth(t, dialed, accepted)
	})
}

// A peer that goes away without closing ends what is pending, after what had
// arrived was read.
func TestPeerLost(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		require.NoError(t, dialed.WriteMessage(ctx, message(1, 0, 100)))
		n, err := accepted.MessageSize(ctx)
		require.NoError(t, err)
		require.Equal(t, 100, n)
		require.NoError(t, dialed.CloseNow())
		buf := make([]byte, 100)
		n, err = accepted.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, message(1, 0, 100), buf[:n])
		_, err = accepted.ReadMessage(ctx, buf)
		require.ErrorIs(t, err, ErrPeerLost)
		require.ErrorIs(t, accepted.WriteMessage(ctx, buf), ErrPeerLost)
		require.NoError(t, accepted.Close(), "everything written here was nothing")
	})
}

// A reactor that is closed ends its connections, whatever they do.
func TestReactorClose(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 4})
		ctx := deadline(t)
		var ended sync.WaitGroup
		for range 4 {
			ended.Go(func() {
				for {
					if err := dialed.WriteMessage(ctx, make([]byte, 9000)); err != nil {
						if !errors.Is(err, net.ErrClosed) {
							t.Errorf("write: %v", err)
						}
						return
					}
				}
			})
			ended.Go(func() {
				if _, err := dialed.ReadMessage(ctx, make([]byte, 10)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("read: %v", err)
				}
			})
		}
		n, err := accepted.MessageSize(ctx)
		require.NoError(t, err)
		require.Equal(t, 9000, n)
		require.NoError(t, dialed.reactor.Close())
		ended.Wait()
		l, err := accepted.reactor.Listen(ctx, "127.0.0.1:0")
		require.NoError(t, err)
		_, err = dialed.reactor.Dial(ctx, l.Addr().String())
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, l.Close())
		require.NoError(t, dialed.Close())
	})
}
