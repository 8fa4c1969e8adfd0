package efa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// CloseContext waits for the peer as long as its context allows, and no longer.
func TestCloseContext(t *testing.T) {
	givesBack(t)
	n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{})
	from, to := openOn(t, d1, Config{DrainTimeout: time.Nanosecond}), openOn(t, d2, Config{})

	// It is done when the peer has everything, whatever DrainTimeout is.
	a, b := join(t, from, to)
	require.NoError(t, a.WriteMessage(deadline(t), message(1, 0, 10_000)))
	require.NoError(t, a.CloseContext(deadline(t)))
	b.expect(t, 1, 0, 1, 10_000)
	require.NoError(t, b.Close())

	// A peer that does not get it is not waited for. What a context does that has
	// ended before races with the beginning of the close, so there are many.
	why := errors.New("enough")
	for i := range 60 {
		late := i == 0
		a, b = join(t, from, to)
		n.Partition(d1, d2)
		require.NoError(t, a.TrySend([]byte("x")))
		ctx, cancel := context.WithCancelCause(deadline(t))
		if !late {
			cancel(why)
		}
		closed := make(chan error, 1)
		go func() { closed <- a.CloseContext(ctx) }()
		if late {
			eventually(t, from, func() bool { return a.locallyClosed })
			cancel(why)
		}
		err := <-closed
		require.ErrorIs(t, err, why, "late %v", late)
		require.ErrorIs(t, err, net.ErrClosed)
		require.Equal(t, err, a.Close(), "the same for later calls")
		require.ErrorIs(t, a.WriteMessage(deadline(t), nil), net.ErrClosed)
		n.Heal(d1, d2)
		_, err = b.ReadMessage(deadline(t), make([]byte, 1))
		if err == nil {
			_, err = b.ReadMessage(deadline(t), make([]byte, 1))
		}
		// It may have been told that this was all before the end.
		if err != io.EOF {
			require.ErrorIs(t, err, ErrPeerLost)
		}
		require.NoError(t, b.Close())
		cancel(nil)
	}
	requireLetGo(t, from, to)
}

// A listener that is closed while handshakes are at every step leaves nothing of
// them, and whoever dials learns it.
func TestListenerClosesDuringHandshakes(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		givesBack(t)
		from, to := b.open(t, Config{}), b.open(t, Config{})
		for round := range 10 {
			l, err := to.Listen(deadline(t), "127.0.0.1:0")
			require.NoError(t, err)
			var silent []net.Conn
			for range 3 {
				tcp, err := net.Dial("tcp", l.Addr().String())
				require.NoError(t, err)
				silent = append(silent, tcp)
			}
			_, err = silent[0].Write([]byte("we"))
			require.NoError(t, err)
			var all sync.WaitGroup
			some := make(chan struct{}, 100)
			for range 8 {
				all.Go(func() {
					for {
						c, err := from.Dial(deadline(t), l.Addr().String())
						some <- struct{}{}
						if err != nil {
							if !errors.Is(err, ErrHandshake) {
								t.Errorf("dial: %v", err)
							}
							return
						}
						// Accepted or not, it ends.
						if _, err = c.ReadMessage(deadline(t), make([]byte, 1)); !errors.Is(err, ErrPeerLost) {
							t.Errorf("a connection that nobody accepted: %v", err)
						}
						if err := c.Close(); err != nil {
							t.Errorf("close: %v", err)
						}
					}
				})
			}
			for range min(round, 8) {
				<-some
			}
			go func() {
				for range some {
					continue // the others need not wait
				}
			}()
			require.NoError(t, l.Close())
			require.NoError(t, l.Close(), "twice")
			_, err = l.AcceptConn(deadline(t))
			require.ErrorIs(t, err, net.ErrClosed)
			all.Wait()
			close(some)
			for _, tcp := range silent {
				require.NoError(t, tcp.Close())
			}
			requireLetGo(t, from, to)
		}
	})
}

// A reactor that is closed in the middle of everything: each call ends, and nothing
// is left.
func TestReactorClosesDuringEverything(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		givesBack(t)
		for round := range 5 {
			// The first is closed here; the bed closes what is left.
			from, to := b.open(t, Config{WindowMessages: 8}), b.open(t, Config{WindowMessages: 8})
			l, err := from.Listen(deadline(t), "127.0.0.1:0")
			require.NoError(t, err)
			var all sync.WaitGroup
			var callbacks sync.WaitGroup
			ended := func(what string, err error, kinds ...error) {
				for _, kind := range append(kinds, net.ErrClosed) {
					if errors.Is(err, kind) {
						return
					}
				}
				t.Errorf("%s: %v", what, err)
			}
			until := func(what string, f func() error, kinds ...error) {
				all.Go(func() {
					for {
						if err := f(); err != nil {
							ended(what, err, kinds...)
							return
						}
					}
				})
			}
			ctx := deadline(t)
			begun := make(chan struct{}, 1000)
			for k := range 3 {
				c, peer := join(t, from, to)
				buf := make([]byte, 200_000)
				until("write", func() error { return c.WriteMessage(ctx, make([]byte, min(k*50_000+10, b.mostAtDeath()))) })
				until("read", func() error { _, err := c.ReadMessage(ctx, buf); return err })
				until("flush", func() error { return c.Flush(ctx, FlushRemote) })
				until("callback", func() error {
					callbacks.Add(1)
					err := c.WriteMessageAsync(make([]byte, 100), func(error) { callbacks.Done() })
					if err != nil {
						callbacks.Done()
					}
					if errors.Is(err, ErrWouldBlock) {
						err = nil
					}
					return err
				})
				until("write of the peer", func() error { return peer.WriteMessage(ctx, make([]byte, min(5000, b.mostAtDeath()))) }, ErrPeerLost, ErrTransfer)
				more := make([]byte, 200_000)
				until("read of the peer", func() error {
					_, err := peer.ReadMessage(ctx, more)
					select {
					case begun <- struct{}{}:
					default:
					}
					return err
				}, ErrPeerLost)
			}
			until("dial", func() error {
				c, err := from.Dial(ctx, l.Addr().String())
				if err != nil {
					return err
				}
				return c.CloseNow()
			}, ErrHandshake)
			until("accept", func() error {
				c, err := l.AcceptConn(ctx)
				if err != nil {
					return err
				}
				err = c.Close()
				if errors.Is(err, ErrPeerLost) {
					err = nil
				}
				return err
			})
			until("flush of the reactor", func() error {
				err := from.Flush(ctx, FlushLocal)
				var e *ConnError
				if errors.As(err, &e) && !from.closed.Load() {
					err = nil // of one that was dialed and closed
				}
				return err
			}, ErrPeerLost)
			for range 20 * (round + 1) {
				<-begun
			}
			require.NoError(t, from.Close())
			require.NoError(t, from.Close(), "twice")
			require.NoError(t, l.Close())
			all.Wait()
			callbacks.Wait()
			require.Eventually(t, func() bool { return to.Stats().Connections == 0 }, patience, time.Millisecond, fmt.Sprint("round ", round))
			require.NoError(t, to.Close())
		}
	})
}

// Whoever accepts hears that the reactor was closed, or that its device has failed.
func TestAcceptEndsWithTheDevice(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		givesBack(t)
		for _, fails := range []bool{false, true} {
			r := b.open(t, Config{})
			l, err := r.Listen(deadline(t), "127.0.0.1:0")
			require.NoError(t, err)
			accepted := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := l.AcceptConn(deadline(t))
					accepted <- err
				}()
			}
			want := net.ErrClosed
			if fails {
				want = errors.New("the device is on fire")
				r.do(func() { r.breakDown(want) })
			} else {
				require.NoError(t, r.Close())
			}
			_, later := l.AcceptConn(deadline(t))
			_, again := r.Listen(deadline(t), "127.0.0.1:0")
			for _, err := range []error{<-accepted, <-accepted, later, again} {
				require.ErrorIs(t, err, want)
				var failed *DeviceError
				require.Equal(t, fails, errors.As(err, &failed))
			}
			require.NoError(t, l.Close())
			require.NoError(t, r.Close())
		}
	})
}

// A message that the device keeps for good, as some providers do when its receiver
// is gone, keeps its buffer, and not its connection's place.
func TestDeviceKeepsMessage(t *testing.T) {
	givesBack(t)
	n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{})
	from, to := openOn(t, d1, Config{MaxConnections: 1}), openOn(t, d2, Config{})
	a, b := join(t, from, to)
	n.HoldCompletions(d1)
	q, err := a.Send(make([]byte, 10_000))
	require.NoError(t, err)
	require.NoError(t, n.AwaitHeld(deadline(t), d1, 1))
	require.NoError(t, b.CloseNow())
	err = q.Wait(deadline(t))
	var in *InFlightError
	require.ErrorAs(t, err, &in)
	require.ErrorIs(t, err, ErrPeerLost)
	require.ErrorIs(t, a.Close(), ErrPeerLost)
	requireLetGo(t, from)
	select {
	case <-in.Released:
		t.Error("the device has the buffer")
	default:
	}
	n.StopHolding(d1)
	// There is room for another one, from which messages come as from the first.
	a, b = join(t, from, to)
	require.NoError(t, b.WriteMessage(deadline(t), message(1, 0, 10)))
	a.expect(t, 1, 0, 1, 10)
	<-in.Released
	closeBoth(t, a, b)
	require.Eventually(t, func() bool {
		var peers int
		from.do(func() { peers = len(from.peers) })
		return peers == 0
	}, patience, time.Millisecond)
}
