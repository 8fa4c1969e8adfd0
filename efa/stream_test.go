package efa

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// streams opens two reactors and a stream between them.
func (b *bed) streams(t *testing.T, config Config) (dialed, accepted *Stream) {
	t.Helper()
	from, to := b.connect(t, config)
	return from.Stream(), to.Stream()
}

func closeStreams(t *testing.T, a, b *Stream) {
	t.Helper()
	closeBoth(t, a.Conn(), b.Conn())
}

// Whatever the sizes of writes and reads, the bytes are the same; each buffer is
// scribbled over as soon as Write has returned it.
func TestStreamBytes(t *testing.T) {
	for name, config := range map[string]Config{
		"default": {},
		"small window": {
			WindowBytes: 32 << 10, WindowMessages: 5, MaxMessage: 12 << 10, EagerLimit: 100,
		},
		"smallest window": {WindowBytes: 1, WindowMessages: 1, MaxMessage: 2 << 10, EagerLimit: -1},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bed) {
				dialed, accepted := b.streams(t, config)
				total := 12 << 20
				if name != "default" {
					total = 512 << 10
				}
				content := message(1, 0, total)
				var both sync.WaitGroup
				run := func(seed uint64, from, to *Stream) {
					both.Go(func() {
						rng := rand.New(rand.NewPCG(seed, 1))
						buf := make([]byte, 3<<20)
						for rest := content; len(rest) > 0; {
							n := min(randomSize(rng, len(buf)), len(rest))
							copy(buf, rest[:n])
							sent, err := from.Write(buf[:n])
							if err != nil || sent != n {
								t.Errorf("wrote %d of %d bytes: %v", sent, n, err)
								return
							}
							clear(buf[:n])
							rest = rest[n:]
						}
						if err := from.CloseWrite(); err != nil {
							t.Error(err)
						}
					})
					both.Go(func() {
						rng := rand.New(rand.NewPCG(seed, 2))
						buf := make([]byte, 3<<20)
						at := 0
						for {
							n, err := to.Read(buf[:max(randomSize(rng, len(buf)), 1)])
							if n < 0 || at+n > total || !bytes.Equal(content[at:at+n], buf[:n]) {
								t.Errorf("%d bytes from %d on are not those", n, at)
								return
							}
							if at += n; err == io.EOF && at == total {
								return
							}
							if err != nil || n == 0 {
								t.Errorf("read %d bytes, of %d: %v", n, at, err)
								return
							}
						}
					})
				}
				run(1, dialed, accepted)
				run(2, accepted, dialed)
				both.Wait()
				closeStreams(t, dialed, accepted)
			})
		})
	}
}

// randomSize is small, or about the limits, or anything.
func randomSize(rng *rand.Rand, most int) int {
	switch rng.IntN(4) {
	case 0:
		return rng.IntN(100)
	case 1:
		return 4096 - 10 + rng.IntN(20)
	case 2:
		return longestCopy - 10 + rng.IntN(20)
	default:
		return rng.IntN(most)
	}
}

// A read gets what is there, from several messages if they are, and what does
// not fit stays. Messages of no bytes are nothing.
func TestStreamReadsAcrossMessages(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		ctx := deadline(t)
		s := accepted.Stream()
		for _, text := range []string{"", "one ", "", "two ", "three ", ""} {
			require.NoError(t, dialed.WriteMessage(ctx, []byte(text)))
		}
		long := message(1, 1, 10000)
		require.NoError(t, dialed.WriteMessageAsync(long, nil))
		arrived := func() bool {
			var n uint64
			accepted.reactor.do(func() { n = accepted.received })
			return n == 7
		}
		require.Eventually(t, arrived, patience, time.Millisecond)

		n, err := s.Read(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		buf := make([]byte, 20000)
		n, err = s.Read(buf[:6])
		require.NoError(t, err)
		require.Equal(t, "one tw", string(buf[:n]))
		n, err = s.Read(buf)
		require.NoError(t, err)
		require.Equal(t, append([]byte("o three "), long...), buf[:n])

		// What is left of a message is a message.
		require.NoError(t, dialed.WriteMessage(ctx, []byte("message")))
		n, err = s.Read(buf[:3])
		require.NoError(t, err)
		require.Equal(t, "mes", string(buf[:n]))
		n, err = accepted.MessageSize(ctx)
		require.NoError(t, err)
		require.Equal(t, 4, n)
		var short *MessageSizeError
		_, err = accepted.ReadMessage(ctx, buf[:3])
		require.ErrorAs(t, err, &short)
		require.EqualValues(t, 4, short.Size)
		n, err = accepted.ReadMessage(ctx, buf[:4])
		require.NoError(t, err)
		require.Equal(t, "sage", string(buf[:n]))
		closeBoth(t, dialed, accepted)
	})
}

// Writing nothing sends nothing.
func TestStreamWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.streams(t, Config{WindowMessages: 1})
		for range 10 {
			n, err := dialed.Write(nil)
			require.NoError(t, err)
			require.Zero(t, n)
		}
		require.NoError(t, dialed.Close())
		n, err := accepted.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.Zero(t, n)
		require.NoError(t, accepted.Close())
		_, err = dialed.Write(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = dialed.Read(nil)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// A message longer than the window, from a program that sends messages, reaches
// a stream whose reads are short.
func TestStreamReadsLongMessage(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowBytes: 10000})
		content := message(1, 1, 300_000)
		require.NoError(t, dialed.WriteMessageAsync(content, nil))
		got := make([]byte, len(content))
		s := accepted.Stream()
		for at := 0; at < len(got); {
			n, err := s.Read(got[at:min(at+7000, len(got))])
			require.NoError(t, err)
			at += n
		}
		require.True(t, bytes.Equal(content, got))
		closeBoth(t, dialed, accepted)
	})
}

// Errors are those that programs written for TCP look for.
func TestStreamErrors(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		buf := make([]byte, 10)

		one, other := join(t, from, to)
		dialed, accepted := one.Stream(), other.Stream()
		require.Same(t, dialed, one.Stream())
		require.Equal(t, "weft", dialed.LocalAddr().Network())
		require.Equal(t, dialed.LocalAddr(), accepted.RemoteAddr())
		require.Equal(t, other.LocalAddr().String(), dialed.RemoteAddr().String())
		require.NoError(t, dialed.Close())
		_, err := accepted.Read(buf)
		require.Equal(t, io.EOF, err)
		_, err = accepted.Write(buf)
		require.ErrorIs(t, err, ErrPeerClosed)
		require.ErrorIs(t, err, syscall.EPIPE)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "write", op.Op)
		require.False(t, op.Timeout())
		require.Equal(t, "write weft "+other.LocalAddr().String()+"->"+other.RemoteAddr().String()+": closed by the peer", err.Error())
		require.NoError(t, accepted.Close())
		for _, do := range []func() error{
			func() error { _, err := accepted.Read(buf); return err },
			func() error { _, err := accepted.Write(buf); return err },
			func() error { return accepted.CloseWrite() },
			func() error { return accepted.SetDeadline(time.Time{}) },
		} {
			require.ErrorIs(t, do(), net.ErrClosed)
		}

		one, other = join(t, from, to)
		dialed, accepted = one.Stream(), other.Stream()
		require.NoError(t, dialed.CloseWrite())
		_, err = dialed.Write(buf)
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, one.CloseNow())
		_, err = accepted.Read(buf)
		require.Equal(t, io.EOF, err, "it had ended its writing")
		require.Eventually(t, func() bool {
			_, err = accepted.Write(buf)
			return err != nil
		}, patience, time.Millisecond)
		require.ErrorIs(t, err, ErrPeerLost)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		var why *ConnError
		require.ErrorAs(t, err, &why)
		accepted.Close()
	})
}

// Calls that wait when a stream is closed end with net.ErrClosed, on the other
// side with the end of the stream.
func TestStreamCloseEndsWaitingCalls(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.streams(t, Config{WindowBytes: 100_000})
		var all sync.WaitGroup
		all.Go(func() {
			n, err := dialed.Write(make([]byte, 1_000_000))
			if !errors.Is(err, net.ErrClosed) || n == 0 || n == 1_000_000 {
				t.Errorf("wrote %d bytes: %v", n, err)
			}
		})
		all.Go(func() {
			if n, err := dialed.Read(make([]byte, 10)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("read %d bytes: %v", n, err)
			}
		})
		waiting := func() (yes bool) {
			c := dialed.conn
			c.reactor.do(func() { yes = c.waiting.head != nil && len(c.readers) > 0 })
			return yes
		}
		require.Eventually(t, waiting, patience, time.Millisecond)
		require.NoError(t, dialed.Close())
		all.Wait()
		got, err := io.ReadAll(accepted)
		require.NoError(t, err)
		require.NotEmpty(t, got)
		require.NoError(t, accepted.Close())
	})
}

func TestListenerAccept(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		var l net.Listener
		l, err := to.Listen(deadline(t), "127.0.0.1:0")
		require.NoError(t, err)
		dialed, err := from.DialContext(deadline(t), "weft", l.Addr().String())
		require.NoError(t, err)
		accepted, err := l.Accept()
		require.NoError(t, err)
		_, err = from.DialContext(deadline(t), "udp", l.Addr().String())
		var unknown net.UnknownNetworkError
		require.ErrorAs(t, err, &unknown)

		ended := make(chan error)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
		require.NoError(t, l.Close())
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)

		// The connections go on.
		_, err = dialed.Write([]byte("still here"))
		require.NoError(t, err)
		buf := make([]byte, 20)
		n, err := accepted.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "still here", string(buf[:n]))
		closeStreams(t, dialed.(*Stream), accepted.(*Stream))
	})
}

// The memory that a stream's sender copies to is bounded by its own window, not
// only by what the peer says that it has room for.
func TestStreamCopiesAreBounded(t *testing.T) {
	b := newBed(t, settings[0])
	const most = 100_000
	from, to := b.open(t, Config{WindowBytes: most}), b.open(t, Config{WindowBytes: 1 << 30})
	one, other := join(t, from, to)
	dialed, accepted := one.Stream(), other.Stream()
	near, far := from.device.(*fabrictest.Device), to.device.(*fabrictest.Device)
	b.Network.Partition(near, far)
	content := message(1, 1, 1_000_000)
	require.NoError(t, dialed.SetWriteDeadline(time.Now().Add(time.Hour)))
	written := make(chan error)
	go func() {
		_, err := dialed.Write(content)
		written <- errors.Join(err, dialed.CloseWrite())
	}()
	stuck := func() (yes bool) {
		from.do(func() { yes = one.waiting.head != nil })
		return yes
	}
	require.Eventually(t, stuck, patience, time.Millisecond)
	copied := func() (n int) {
		from.do(func() { n = one.copied })
		return n
	}
	require.LessOrEqual(t, copied(), most)
	b.Network.Heal(near, far)
	got, err := io.ReadAll(accepted)
	require.NoError(t, err)
	require.NoError(t, <-written)
	require.True(t, bytes.Equal(content, got))
	require.Eventually(t, func() bool { return copied() == 0 }, patience, time.Millisecond)
	closeStreams(t, dialed, accepted)
}
