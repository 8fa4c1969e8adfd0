//go:build linux

package efa

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// says is a frame of the end of a connection, as the peer of c would send it.
func says(t frameType, count uint64) []byte {
	return appendFrame(nil, t, binary.LittleEndian.AppendUint64(nil, count))
}

// says sends bytes over the control connection, in the name of c.
func (c *Conn) says(t *testing.T, b []byte) {
	t.Helper()
	_, err := c.control.tcp.Write(b)
	require.NoError(t, err)
}

// ends reads c to its end.
func (c *Conn) ends(t *testing.T) error {
	t.Helper()
	_, err := c.ReadMessage(deadline(t), nil)
	require.Error(t, err)
	return err
}

// watched counts the connections that the watcher has.
func (r *Reactor) watched() int {
	r.watcher.mu.Lock()
	defer r.watcher.mu.Unlock()
	return len(r.watcher.conns)
}

// However many connections there are, one goroutine watches them.
func TestOneWatcher(t *testing.T) {
	b := newBed(t, plain)
	from, to := b.open(t, Config{}), b.open(t, Config{})
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	var dialed, accepted []*Conn
	connect := func() {
		c, err := from.Dial(deadline(t), l.Addr().String())
		require.NoError(t, err)
		dialed = append(dialed, c)
		c, err = l.AcceptConn(deadline(t))
		require.NoError(t, err)
		accepted = append(accepted, c)
	}
	connect()
	before := runtime.NumGoroutine()
	const more = 50
	for range more {
		connect()
	}
	require.Equal(t, 1+more, from.watched())
	// Handshakes may be ending yet.
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+5 }, patience, time.Millisecond)
	require.NoError(t, l.Close())
	for i := range dialed {
		closeBoth(t, dialed[i], accepted[i])
	}
	require.Zero(t, from.watched())
	require.Zero(t, to.watched())
}

// Frames may come in any pieces.
func TestFramesInPieces(t *testing.T) {
	both := append(says(frameWritten, 0), says(frameFinish, 0)...)
	for name, pieces := range map[string][][]byte{
		"at once":      {both},
		"byte by byte": bytes.SplitAfter(both, nil),
		"cut wrong":    {both[:headerSize+3], both[headerSize+3:]},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, plain)
			bad, victim := b.connect(t, Config{})
			for _, p := range pieces {
				bad.says(t, p)
				// It is read before the next one comes.
				if len(p) < len(both) {
					eventually(t, victim.reactor, func() bool { return !unread(victim.control.tcp) })
				}
			}
			require.ErrorIs(t, victim.ends(t), io.EOF)
			eventually(t, victim.reactor, func() bool { return victim.peerClosed })
			require.NoError(t, bad.CloseNow())
			require.NoError(t, victim.CloseNow())
		})
	}
}

// What the peer may not say ends its connection, and no other.
func TestBadFrames(t *testing.T) {
	b := newBed(t, plain)
	from, to := b.open(t, Config{}), b.open(t, Config{})
	good, goodEnd := join(t, from, to)
	long := append([]byte(frameMagic), frameVersion, byte(frameFinish), 0xff, 0xff)
	for name, test := range map[string]struct {
		says []byte
		kind error
	}{
		"garbage":              {[]byte("GET / HTTP/1.1\r\n\r\n"), ErrProtocol},
		"one byte of it":       {[]byte{0}, ErrProtocol},
		"too long":             {long, ErrProtocol},
		"another frame":        {says(frameHello, 0), ErrProtocol},
		"no count":             {appendFrame(nil, frameFinish, nil), ErrProtocol},
		"another count":        {append(says(frameWritten, 0), says(frameFinish, 1)...), ErrProtocol},
		"the same for ever":    {bytes.Repeat(says(frameWritten, 0), 1000), ErrProtocol},
		"a refusal":            {appendFrame(nil, frameRefusal, encodeRefusal(io.EOF)), ErrPeerLost},
		"garbage behind frame": {append(says(frameWritten, 7), "garbage"...), ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			bad, victim := join(t, from, to)
			bad.says(t, test.says)
			eventually(t, to, func() bool { return victim.over })
			require.ErrorIs(t, victim.Stats().Err, test.kind)
			require.NoError(t, bad.CloseNow())
			_ = victim.CloseNow()
		})
	}
	require.NoError(t, good.WriteMessage(deadline(t), []byte("x")))
	goodEnd.expectBytes(t, 1)
	closeBoth(t, good, goodEnd)
}

// The control connection's end is the peer's, whatever was half said, and how it
// came is told.
func TestControlConnectionEnds(t *testing.T) {
	for name, end := range map[string]struct {
		end   func(t *testing.T, c *Conn)
		cause func(t *testing.T, err error)
	}{
		"between frames": {
			func(t *testing.T, c *Conn) {},
			func(t *testing.T, err error) { require.ErrorContains(t, err, "its control connection ended") },
		},
		"within a frame": {
			func(t *testing.T, c *Conn) { c.says(t, says(frameFinish, 0)[:headerSize+1]) },
			func(t *testing.T, err error) { require.ErrorIs(t, err, io.ErrUnexpectedEOF) },
		},
		"by a reset": {
			func(t *testing.T, c *Conn) { require.NoError(t, c.control.tcp.(*net.TCPConn).SetLinger(0)) },
			func(t *testing.T, err error) {
				require.ErrorIs(t, err, syscall.ECONNRESET)
				var network *net.OpError
				require.ErrorAs(t, err, &network)
				require.Equal(t, "read", network.Op)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, plain)
			one, other := b.connect(t, Config{})
			end.end(t, one)
			require.NoError(t, one.CloseNow())
			err := other.ends(t)
			require.ErrorIs(t, err, ErrPeerLost)
			end.cause(t, err)
			require.NoError(t, other.CloseNow())
		})
	}
}

// A connection whose peer has closed is still open here, and costs no more than it
// did: its end is not told again and again.
func TestEndIsToldOnce(t *testing.T) {
	b := newBed(t, plain)
	one, other := b.connect(t, Config{})
	require.NoError(t, other.CloseWrite())
	require.NoError(t, one.Close())
	require.ErrorIs(t, other.ends(t), io.EOF)
	eventually(t, other.reactor, func() bool { return other.hungUp })
	require.Eventually(t, func() bool { return other.reactor.watched() == 0 }, patience, time.Millisecond)
	require.NoError(t, other.Close())
}

// Where the system has no room for a set, each connection has a goroutine.
func TestNoWatcher(t *testing.T) {
	b := newBed(t, plain)
	from, to := b.open(t, Config{}), b.open(t, Config{})
	to.watcher.close()
	one, other := join(t, from, to)
	var stacks [1 << 16]byte
	require.Eventually(t, func() bool {
		return strings.Contains(string(stacks[:runtime.Stack(stacks[:], true)]), "efa.(*Conn).watch(")
	}, patience, time.Millisecond)
	require.NoError(t, one.WriteMessage(deadline(t), []byte("x")))
	other.expectBytes(t, 1)
	closeBoth(t, one, other)
	one, other = join(t, from, to)
	require.NoError(t, one.CloseNow())
	require.ErrorIs(t, other.ends(t), ErrPeerLost)
	require.NoError(t, other.CloseNow())
}

// Connections come and go, in every way and at the same time, and their descriptors
// have the numbers of others soon: those of others are not read, or ended.
func TestWatcherWithReusedDescriptors(t *testing.T) {
	b := newBed(t, plain)
	from, to := b.open(t, Config{}), b.open(t, Config{})
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	good, err := from.Dial(deadline(t), l.Addr().String())
	require.NoError(t, err)
	goodEnd, err := l.AcceptConn(deadline(t))
	require.NoError(t, err)
	var all sync.WaitGroup
	var done atomic.Int32
	const workers, rounds = 8, 60
	for worker := range workers {
		all.Go(func() {
			defer done.Add(1)
			for i := range rounds {
				c, err := from.Dial(deadline(t), l.Addr().String())
				if err != nil {
					t.Errorf("dial: %v", err)
					return
				}
				switch (worker + i) % 3 {
				case 0:
					err = c.Close()
				case 1:
					err = c.CloseNow()
				default:
					// Both sides at once, and the peer answers nothing.
					c.control.tcp.Close()
					err = c.CloseNow()
				}
				if err != nil {
					t.Errorf("close: %v", err)
				}
			}
		})
	}
	for range workers * rounds {
		c, err := l.AcceptConn(deadline(t))
		require.NoError(t, err)
		all.Go(func() {
			if _, err := c.ReadMessage(deadline(t), nil); err == nil {
				t.Error("a message that nobody sent")
			}
			_ = c.Close()
		})
	}
	all.Wait()
	require.Equal(t, int32(workers), done.Load())
	require.NoError(t, good.WriteMessage(deadline(t), []byte("x")))
	goodEnd.expectBytes(t, 1)
	require.Equal(t, 1, from.watched())
	require.Equal(t, 1, to.watched())
	require.NoError(t, l.Close())
	closeBoth(t, good, goodEnd)
}

// A reactor that is closed in the middle of what its connections do leaves nothing.
func TestCloseWhileWatching(t *testing.T) {
	b := newBed(t, plain)
	for range 20 {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		l, err := to.Listen(deadline(t), "127.0.0.1:0")
		require.NoError(t, err)
		var all sync.WaitGroup
		ready := make(chan struct{}, 4)
		for range 4 {
			all.Go(func() {
				for {
					c, err := from.Dial(deadline(t), l.Addr().String())
					if err != nil {
						return
					}
					select {
					case ready <- struct{}{}:
					default:
					}
					_ = c.CloseNow()
				}
			})
		}
		<-ready
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
		all.Wait()
		require.NoError(t, l.Close())
	}
}
