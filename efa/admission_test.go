package efa

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// stranger connects to a listener and says this much.
func stranger(t *testing.T, l *Listener, says []byte) net.Conn {
	t.Helper()
	tcp, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { tcp.Close() })
	require.NoError(t, tcp.SetDeadline(time.Now().Add(patience)))
	_, err = tcp.Write(says)
	require.NoError(t, err)
	return tcp
}

// refusal reads until the listener says why not.
func refusal(t *testing.T, tcp net.Conn) error {
	t.Helper()
	_, _, err := readFrame(tcp, frameReady)
	return err
}

func goodHello() []byte { return appendFrame(nil, frameHello, (&hello{}).encode()) }

func keyedHello() []byte { return appendFrame(nil, frameHello, (&hello{keyed: true}).encode()) }

// Those who have not said who they are make room for others at once.
func TestSilenceKeepsNobodyOut(t *testing.T) {
	a := newAuthority(t)
	for _, test := range []struct {
		name     string
		from, to Config
		says     []byte
	}{
		{"nothing", Config{}, Config{}, nil},
		{"half a hello", Config{}, Config{}, goodHello()[:11]},
		{"a hello, and no proof", Config{Key: testKey(0)}, Config{Key: testKey(0)}, keyedHello()},
		{"nothing to TLS", Config{TLS: a.client()}, Config{TLS: a.server(t)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, plain)
			test.to.MaxHandshakes = 1
			from, to := b.open(t, patient(test.from)), b.open(t, patient(test.to))
			l, err := to.Listen(deadline(t), "127.0.0.1:0")
			require.NoError(t, err)
			for range 3 {
				tcp := stranger(t, l, test.says)
				if len(test.says) > 0 && test.to.Key != nil {
					// Until this is here, the listener may not have begun.
					_, _, err := readFrame(tcp, frameChallenge)
					require.NoError(t, err)
				}
				dialed, err := from.Dial(deadline(t), l.Addr().String())
				require.NoError(t, err)
				require.ErrorIs(t, refusal(t, tcp), ErrTooManyHandshakes)
				accepted, err := l.AcceptConn(deadline(t))
				require.NoError(t, err)
				closeBoth(t, dialed, accepted)
			}
			require.NoError(t, l.Close())
		})
	}
}

// Silence ends after HelloTimeout, not only after HandshakeTimeout, and
// likewise what is said byte by byte.
func TestHelloTimeout(t *testing.T) {
	a := newAuthority(t)
	for _, test := range []struct {
		name string
		to   Config
		says []byte
	}{
		{"nothing", Config{}, nil},
		{"half a hello", Config{}, goodHello()[:11]},
		{"a hello, and no proof", Config{Key: testKey(0)}, keyedHello()},
		{"nothing to TLS", Config{TLS: a.server(t)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, plain)
			test.to.HelloTimeout, test.to.HandshakeTimeout = 20*time.Millisecond, time.Hour
			l, err := b.open(t, test.to).Listen(deadline(t), "127.0.0.1:0")
			require.NoError(t, err)
			tcp := stranger(t, l, test.says)
			if test.to.Key != nil {
				_, _, err := readFrame(tcp, frameChallenge)
				require.NoError(t, err)
			}
			err = refusal(t, tcp)
			require.ErrorIs(t, err, ErrHandshakeTimeout)
			require.ErrorContains(t, err, "20ms")
			require.NoError(t, l.Close())
		})
	}
}

// After the hello the whole handshake counts.
func TestHandshakeTimeout(t *testing.T) {
	b := newBed(t, plain)
	to := b.open(t, Config{HelloTimeout: time.Millisecond * 10, HandshakeTimeout: 50 * time.Millisecond})
	// Without a listener, whose clock begins when it gets to run.
	here, there := net.Pipe()
	defer there.Close()
	ended := make(chan error)
	go func() {
		_, err := to.accept(deadline(t), newOpening(here), nil)
		ended <- err
	}()
	require.NoError(t, there.SetDeadline(time.Now().Add(patience)))
	_, err := there.Write(goodHello())
	require.NoError(t, err)
	_, _, err = readFrame(there, frameOffer)
	require.NoError(t, err)
	_, _, err = readFrame(there, frameReady)
	require.ErrorIs(t, err, ErrHandshakeTimeout)
	err = <-ended
	require.ErrorIs(t, err, ErrHandshakeTimeout)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorContains(t, err, "50ms")
	require.Zero(t, to.Stats().Connections)
}

// Whoever has said hello stays, and so does who waits for AcceptConn.
func TestThoseWhoStay(t *testing.T) {
	b := newBed(t, plain)
	from, to := b.open(t, patient(Config{})), b.open(t, patient(Config{MaxHandshakes: 2}))
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	waiting, err := from.Dial(deadline(t), l.Addr().String())
	require.NoError(t, err)
	polite := stranger(t, l, goodHello())
	_, _, err = readFrame(polite, frameOffer)
	require.NoError(t, err)
	for range 5 {
		stranger(t, l, nil)
	}
	hasty := b.open(t, Config{HandshakeTimeout: 50 * time.Millisecond})
	_, err = hasty.Dial(deadline(t), l.Addr().String())
	require.ErrorIs(t, err, ErrHandshakeTimeout)
	// The polite one is still listened to.
	_, err = polite.Write(appendFrame(nil, frameAnswer, nil))
	require.NoError(t, err)
	require.ErrorContains(t, refusal(t, polite), "end too early")
	accepted, err := l.AcceptConn(deadline(t))
	require.NoError(t, err)
	talk(t, waiting, accepted)
	closeBoth(t, waiting, accepted)
	dialed, err := from.Dial(deadline(t), l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_ = dialed.CloseNow()
}

// Who has to leave: the one who is silent for the longest time, and else the
// one who has not finished.
func TestAdmissionOrder(t *testing.T) {
	a := newAdmission(4)
	a.moment = 0
	var dropped []string
	enter := func(name string) *visitor {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close(); there.Close() })
		v := &visitor{tcp: here}
		v.drop = func(err error) {
			require.ErrorIs(t, err, ErrTooManyHandshakes)
			dropped = append(dropped, name)
			// As the end of its handshake would.
			go a.leave()
		}
		require.True(t, a.enter(deadline(t), v))
		return v
	}
	one, two, three, four := enter("one"), enter("two"), enter("three"), enter("four")
	a.spoke(one)
	a.stays(three)
	enter("five")
	require.Equal(t, []string{"two"}, dropped, "one has spoken")
	a.spoke(two) // too late
	a.stays(two)
	six := enter("six")
	require.Equal(t, []string{"two", "four"}, dropped)
	a.spoke(four)
	seven := enter("seven")
	require.Equal(t, []string{"two", "four", "five"}, dropped)
	a.spoke(six)
	a.spoke(seven)
	enter("eight")
	require.Equal(t, []string{"two", "four", "five", "one"}, dropped, "it has spoken first")
	enter("nine")
	require.Equal(t, "eight", dropped[4], "it is silent")
	a.stays(six)
	a.stays(seven)
	enter("ten")
	require.Equal(t, "nine", dropped[5])
}

// With nobody to drop, entering waits for a place, or for the end.
func TestAdmissionWaits(t *testing.T) {
	a := newAdmission(1)
	first := &visitor{}
	require.True(t, a.enter(deadline(t), first))
	a.stays(first)
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan bool)
	go func() { entered <- a.enter(ctx, &visitor{}) }()
	cancel()
	require.False(t, <-entered)
	go func() { entered <- a.enter(deadline(t), &visitor{}) }()
	a.leave()
	require.True(t, <-entered)
}

// One whose hello has come, but could not be read yet, is not silent.
func TestAdmissionLooksBeforeItDrops(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer there.Close()
	here, err := l.Accept()
	require.NoError(t, err)
	defer here.Close()
	require.False(t, unread(here))
	_, err = there.Write([]byte("w"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return unread(here) }, patience, 1e6)
	a := newAdmission(2)
	a.moment = 0
	_, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	require.True(t, a.enter(deadline(t), &visitor{tcp: here, drop: cancel}))
	dropped, _ := a.dropOne()
	require.False(t, dropped)
	_, err = io.ReadFull(here, make([]byte, 1))
	require.NoError(t, err)
	a.moment = time.Hour
	dropped, wait := a.dropOne()
	require.False(t, dropped, "it has a moment")
	require.Positive(t, wait)
	a.moment = 0
	dropped, _ = a.dropOne()
	require.True(t, dropped)
	dropped, _ = a.dropOne()
	require.False(t, dropped, "it is gone")
}

// Strangers cannot fill the log.
func TestThrottle(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var th throttle
	now := time.Now()
	admitted := 0
	for range 1000 {
		if _, ok := th.admits(now); ok {
			admitted++
		}
	}
	require.Equal(t, mostWarnings, admitted)
	left, ok := th.admits(now.Add(time.Second))
	require.True(t, ok)
	require.Equal(t, 1000-mostWarnings, left)
	th = throttle{left: 3}
	th.log(log, "text", "key", 1)
	require.Contains(t, out.String(), `msg=text key=1 left_out=3`)
}

// openDescriptors counts those of this process.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// memory is what the heap and the stacks take after a collection, in bytes.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// flood connects to a port this many times, without a word, and keeps so many
// of the connections open at once. Now and then it calls look.
func flood(address *net.TCPAddr, times, open int, look func()) error {
	target := &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte{127, 0, 0, 1}}
	fds := make([]int, 0, open) // used as a ring
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for i := range times {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		unix.CloseOnExec(fd)
		if len(fds) < open {
			fds = append(fds, fd)
		} else {
			_ = unix.Close(fds[i%open])
			fds[i%open] = fd
		}
		if err := unix.Connect(fd, target); err != nil {
			return err
		}
		if i%open == open-1 {
			look()
		}
	}
	return nil
}

// Ten thousand connects that never finish: whoever means it gets through, and
// nothing of them is left.
func TestFlood(t *testing.T) {
	const (
		times  = 10_000
		places = 128
	)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	open := int(min(limit.Cur/8, 1000))
	for name, key := range map[string][]byte{"plain": nil, "with a key": testKey(0)} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, plain)
			from, to := b.open(t, Config{Key: key}), b.open(t, Config{Key: key, MaxHandshakes: places})
			var warnings atomic.Int32
			to.log = slog.New(counting{slog.DiscardHandler, &warnings})
			l, err := to.Listen(deadline(t), "127.0.0.1:0")
			require.NoError(t, err)
			// Once without the flood, so that what is made once is there.
			dialed, err := from.Dial(deadline(t), l.Addr().String())
			require.NoError(t, err)
			accepted, err := l.AcceptConn(deadline(t))
			require.NoError(t, err)
			closeBoth(t, dialed, accepted)
			descriptors, goroutines, used := openDescriptors(t), runtime.NumGoroutine(), memory()

			ctx, stop := context.WithCancel(deadline(t))
			var work sync.WaitGroup
			work.Go(func() {
				for {
					c, err := l.AcceptConn(ctx)
					if err != nil {
						return
					}
					work.Go(func() {
						_, err := c.ReadMessage(deadline(t), make([]byte, 10))
						if err := errors.Join(err, c.Close()); err != nil {
							t.Errorf("the listener's side of an honest one: %v", err)
						}
					})
				}
			})
			var honest atomic.Int32
			flooding := make(chan struct{})
			var dialers sync.WaitGroup
			for range 2 {
				dialers.Go(func() {
					for {
						select {
						case <-flooding:
							return
						default:
						}
						c, err := from.Dial(deadline(t), l.Addr().String())
						if err == nil {
							err = errors.Join(c.WriteMessage(deadline(t), []byte("hello")), c.Close())
						}
						if err != nil {
							t.Errorf("an honest dialer: %v", err)
							return
						}
						honest.Add(1)
					}
				})
			}
			var most uint64
			err = flood(l.Addr().(*net.TCPAddr), times, open, func() {
				most = max(most, memory())
				// The places, what accepts, and the honest ones.
				if n := runtime.NumGoroutine(); n > goroutines+3*places+50 {
					t.Errorf("%d goroutines, %d before", n, goroutines)
				}
			})
			close(flooding)
			dialers.Wait()
			require.NoError(t, err)
			require.Positive(t, honest.Load())
			t.Logf("%d honest connections; memory %d KiB before, at most %d KiB; %d warnings", honest.Load(), used>>10, most>>10, warnings.Load())
			require.Less(t, most, used+32<<20)
			require.Less(t, warnings.Load(), int32(times/10))
			stop()
			work.Wait()
			// The last ones leave when their time is up, or here.
			require.Eventually(t, func() bool {
				// This looks from a goroutine of its own.
				return openDescriptors(t) <= descriptors && runtime.NumGoroutine() <= goroutines+1
			}, patience, 1e7)
			require.NoError(t, l.Close())
			require.Zero(t, to.Stats().Connections)
		})
	}
}

// counting counts the warnings.
type counting struct {
	slog.Handler
	records *atomic.Int32
}

func (c counting) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (c counting) Handle(context.Context, slog.Record) error {
	c.records.Add(1)
	return nil
}
