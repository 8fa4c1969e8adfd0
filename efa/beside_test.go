package efa

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tagged"
)

func init() {
	roles["beside"] = playBeside
}

// warm has messages go both ways until both sides put theirs beside the device, if they do that.
func warm(t *testing.T, x, y *Conn) {
	t.Helper()
	sizes := make([]int, 2*invitedAfter)
	for i := range sizes {
		sizes[i] = i
	}
	exchange(t, 100, x, y, sizes)
	exchange(t, 101, y, x, sizes)
	if x.reactor.goesBeside() {
		eventually(t, x.reactor, func() bool { return x.beside != nil && x.beside.outbox != nil })
		eventually(t, y.reactor, func() bool { return y.beside != nil && y.beside.outbox != nil })
	}
}

// Short messages between processes of a host go through memory that both have mapped, in order with
// those that do not, and nothing of that is left.
func TestBeside(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for name, deviceOnly := range map[string]bool{"beside": false, "device only": true} {
			t.Run(name, func(t *testing.T) {
				givesBack(t)
				before := rings.Load()
				t.Cleanup(func() { require.Equal(t, before, rings.Load()) })
				x, y := b.connect(t, Config{DeviceOnly: deviceOnly})
				warm(t, x, y)
				was := x.Stats().Beside
				var sizes []int
				for i := range 300 {
					sizes = append(sizes, []int{0, 1, 40, 41, 100, 4000, 4096, 5000, i * 100}[i%9])
				}
				exchange(t, 1, x, y, sizes)
				exchange(t, 2, y, x, sizes)
				if !deviceOnly && x.reactor.SameHost() && b.Rails == 0 {
					// But for what found no room.
					require.Greater(t, x.Stats().Beside, was+100)
					require.Greater(t, y.Stats().Beside, uint64(100))
				} else {
					require.Zero(t, x.Stats().Beside)
					require.Zero(t, y.Stats().Beside)
				}
				closeBoth(t, x, y)
				requireLetGo(t, x.reactor, y.reactor)
			})
		}
	})
}

// One ring serves all connections between two reactors, and stays as long as one of them is there.
func TestBesideIsShared(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		if !from.goesBeside() {
			require.Zero(t, from.features()&featureBeside)
			return
		}
		before := rings.Load()
		x, y := join(t, from, to)
		warm(t, x, y)
		stays, there := join(t, from, to)
		warm(t, stays, there)
		require.Equal(t, before+4, rings.Load(), "each side has one, and has mapped one")
		closeBoth(t, x, y)
		requireCount(t, 1, from, to)
		// Others come and go.
		for i := range 10 {
			x, y := join(t, from, to)
			warm(t, x, y)
			require.Equal(t, before+4, rings.Load())
			exchange(t, i, stays, there, []int{10, 5000, 100_000, 20})
			closeBoth(t, x, y)
		}
		closeBoth(t, stays, there)
		requireLetGo(t, from, to)
		require.Equal(t, before, rings.Load())
		require.Empty(t, from.beside.inboxes)
		require.Empty(t, from.lookouts.all)
		// And all of it anew.
		for range 3 {
			x, y := join(t, from, to)
			warm(t, x, y)
			require.NoError(t, x.CloseNow())
			require.NoError(t, y.CloseNow())
		}
	})
}

func requireCount(t *testing.T, want int, reactors ...*Reactor) {
	t.Helper()
	for _, r := range reactors {
		require.Eventually(t, func() bool { return r.Stats().Connections == want }, patience, time.Millisecond)
	}
}

// The writer may be done with a ring before its reader is, who invites it again then: it goes on where
// it was.
func TestBesideAgain(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		writer, reader := b.open(t, Config{}), b.open(t, Config{})
		for i := range 20 {
			first, there := join(t, writer, reader)
			second, here := join(t, writer, reader)
			warm(t, first, there)
			// The next message has the reader invite.
			sizes := make([]int, invitedAfter-1)
			exchange(t, i, second, here, sizes)
			// The reader does not know of the end, and has not taken what was put last.
			held, release := make(chan bool), make(chan bool)
			go reader.do(func() {
				close(held)
				<-release
			})
			<-held
			require.NoError(t, first.TrySend(make([]byte, 10+i*100)))
			require.NoError(t, first.CloseNow())
			writer.do(func() {})
			close(release)
			exchange(t, i, second, here, []int{1})
			warm(t, second, here)
			require.NoError(t, there.CloseNow())
			closeBoth(t, second, here)
		}
	})
}

// Who has written nonsense is not invited any more, also while the device has something of it.
func TestBesideIsNotInvitedAgain(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		x, y := join(t, from, to)
		other, there := join(t, from, to)
		warm(t, x, y)
		exchange(t, 1, other, there, make([]int, invitedAfter-1))
		if !from.goesBeside() {
			closeBoth(t, x, y)
			closeBoth(t, other, there)
			return
		}
		// Something of the connection's that the device has.
		stays := to.newHeld(y)
		from.do(func() {
			out := x.beside.outbox
			binary.LittleEndian.PutUint64(entryOf(out.ring, out.sent), lapOf(out.sent)<<32|mostInRing+1)
		})
		_, err := y.ReadMessage(deadline(t), nil)
		require.ErrorIs(t, err, ErrProtocol)
		exchange(t, 1, other, there, make([]int, 3*invitedAfter))
		exchange(t, 2, there, other, make([]int, 3*invitedAfter))
		to.do(func() { require.True(t, there.beside == nil || there.beside.inbox == nil) })
		to.do(func() { to.ended(stays, nil) })
		require.NoError(t, y.CloseNow())
		require.NoError(t, x.CloseNow())
		closeBoth(t, other, there)
	})
}

// newHeld is an operation of a connection that the device seems to have.
func (r *Reactor) newHeld(c *Conn) (op *operation) {
	r.do(func() { op = r.newOperation(c, controlSend) })
	return op
}

// What has no room beside the device goes by it, in order with the rest.
func TestBesideIsFull(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		x, y := b.connect(t, Config{WindowMessages: 1000})
		warm(t, x, y)
		// Nobody looks at what has come.
		held, release := make(chan bool), make(chan bool)
		go y.reactor.do(func() {
			close(held)
			<-release
		})
		<-held
		was := x.Stats()
		var sizes []int
		for i := range 200 {
			sizes = append(sizes, []int{4096, 8}[i%2])
		}
		written := writeAll(t, x, 3, sizes)
		if x.reactor.goesBeside() {
			went := x.Stats().Beside - was.Beside
			require.NotZero(t, went)
			require.Less(t, went, uint64(len(sizes)))
		}
		close(release)
		buf := make([]byte, 5000)
		for i, size := range sizes {
			n, err := y.ReadMessage(deadline(t), buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(3, i, size), buf[:n]), "message %d", i)
		}
		require.NoError(t, <-written)
		closeBoth(t, x, y)
	})
}

// playBeside dials, and writes so many messages more when it is told to.
func playBeside(orders *bufio.Scanner, arguments []string) error {
	r, err := Open(&Config{Providers: arguments[:1], Require: true, Logger: quiet})
	if err != nil {
		return err
	}
	ctx := context.Background()
	c, err := r.Dial(ctx, arguments[1])
	if err != nil {
		return err
	}
	buf := make([]byte, 100)
	for range 2 * invitedAfter {
		if err := c.WriteMessage(ctx, buf); err != nil {
			return err
		}
		if _, err := c.ReadMessage(ctx, buf); err != nil {
			return err
		}
	}
	for orders.Scan() {
		for i := range 50 {
			if err := c.WriteMessage(ctx, message(7, i, i)); err != nil {
				return err
			}
		}
		fmt.Println("written", c.Stats().Beside)
	}
	return nil
}

// besideProcess is a connection with a process that plays the role, and puts its messages beside the device.
func besideProcess(t *testing.T, b *bed, r *Reactor) (*process, *Conn) {
	t.Helper()
	ctx := deadline(t)
	l, err := r.Listen(ctx, "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	p := startProcess(t, "beside", b.Provider, l.Addr().String())
	c, err := l.AcceptConn(ctx)
	require.NoError(t, err)
	buf := make([]byte, 100)
	for range 2 * invitedAfter {
		n, err := c.ReadMessage(ctx, buf)
		require.NoError(t, err)
		require.NoError(t, c.WriteMessage(ctx, buf[:n]))
	}
	return p, c
}

// What a killed peer had written before is read before its end is told.
func TestBesidePeerIsKilled(t *testing.T) {
	eachProcess(t, func(t *testing.T, b *bed) {
		r := b.open(t, Config{idleCheck: time.Hour})
		if !r.goesBeside() {
			require.False(t, r.SameHost())
			return
		}
		p, c := besideProcess(t, b, r)
		ctx, buf := deadline(t), make([]byte, 100)
		p.order(t, "write")
		require.NotEqual(t, "0", p.hear(t, "written"))
		p.kill(t)
		for i := range 50 {
			n, err := c.ReadMessage(ctx, buf)
			require.NoError(t, err, "message %d", i)
			require.True(t, bytes.Equal(message(7, i, i), buf[:n]), "message %d", i)
		}
		_, err := c.ReadMessage(ctx, buf)
		require.ErrorIs(t, err, ErrPeerLost)
		require.NoError(t, c.CloseNow())
	})
}

// What is no message ends the connections of who has written it, and nothing else.
func TestBesideNonsense(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to, third := b.open(t, Config{}), b.open(t, Config{}), b.open(t, Config{})
		x, y := join(t, from, to)
		warm(t, x, y)
		other, there := join(t, third, to)
		warm(t, other, there)
		if !from.goesBeside() {
			require.Empty(t, to.beside.inboxes)
			closeBoth(t, x, y)
			closeBoth(t, other, there)
			return
		}
		out := x.beside.outbox
		dropped := to.Stats().Dropped
		from.do(func() {
			// Of nobody, and of another's connection.
			require.True(t, out.put(tagged.PayloadTag(x.remoteID, 0), []byte("a payload"), nil, nil))
			require.True(t, out.put(tagged.LengthTag(other.remoteID, 1000), make([]byte, 8), nil, nil))
			require.True(t, out.put(0, nil, nil, nil))
		})
		eventually(t, to, func() bool { return to.stats.Dropped == dropped+3 })
		exchange(t, 1, x, y, []int{1, 2, 3})
		from.do(func() {
			entry := entryOf(out.ring, out.sent)
			binary.LittleEndian.PutUint64(entry[entryData:], yardSize)
			binary.LittleEndian.PutUint64(entry, lapOf(out.sent)<<32|mostInLine+1)
		})
		_, err := y.ReadMessage(deadline(t), nil)
		require.ErrorIs(t, err, ErrProtocol)
		exchange(t, 2, other, there, []int{1, 2, 3})
		exchange(t, 3, there, other, []int{1, 2, 3})
		require.NoError(t, y.CloseNow())
		require.NoError(t, x.CloseNow())
		closeBoth(t, other, there)
	})
}

// An invitation to what cannot be mapped is no harm: the messages go by the device.
func TestBesideFalseInvitations(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		x, y := b.connect(t, Config{})
		if !x.reactor.goesBeside() {
			x.reactor.do(func() { x.reactor.sendControl(x, tagged.Control{Type: tagged.ControlInvite}) })
			_, err := y.ReadMessage(deadline(t), nil)
			require.ErrorIs(t, err, ErrProtocol)
			require.NoError(t, y.CloseNow())
			require.NoError(t, x.CloseNow())
			return
		}
		file, err := os.Open("/dev/null")
		require.NoError(t, err)
		defer file.Close()
		own := uint64(os.Getpid()) << 32
		for _, invitation := range []tagged.Control{
			{},
			{Messages: own | uint64(file.Fd())},
			{Messages: own | 1<<31},
			{Messages: 1<<64 - 1, Bytes: 1},
		} {
			invitation.Type = tagged.ControlInvite
			x.reactor.do(func() { x.reactor.sendControl(x, invitation) })
			exchange(t, 1, x, y, []int{10})
			y.reactor.do(func() { require.Nil(t, y.beside) })
		}
		// Nor is one to another's ring.
		third, fourth := b.connect(t, Config{})
		warm(t, third, fourth)
		fourth.reactor.do(func() {
			process, descriptor := fourth.beside.inbox.memory.Name()
			x.reactor.do(func() {
				x.reactor.sendControl(x, tagged.Control{Type: tagged.ControlInvite, Messages: process<<32 | descriptor, Bytes: 1})
			})
		})
		exchange(t, 1, x, y, []int{10})
		y.reactor.do(func() { require.Nil(t, y.beside) })
		warm(t, x, y)
		closeBoth(t, x, y)
		closeBoth(t, third, fourth)
	})
}

// Where the process has no more rings, all goes by the device.
func TestBesideWithoutRings(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		rings.Add(mostRings)
		defer rings.Add(-mostRings)
		x, y := b.connect(t, Config{})
		sizes := make([]int, 100)
		exchange(t, 1, x, y, sizes)
		exchange(t, 2, y, x, sizes)
		require.Zero(t, x.Stats().Beside)
		closeBoth(t, x, y)
	})
}

// A peer that is stopped in the middle holds nobody up but who waits for it.
func TestBesidePeerIsStopped(t *testing.T) {
	eachProcess(t, func(t *testing.T, b *bed) {
		r := b.open(t, Config{})
		if !r.goesBeside() {
			require.False(t, r.SameHost())
			return
		}
		p, c := besideProcess(t, b, r)
		ctx, buf := deadline(t), make([]byte, 100)
		p.stop(t)
		for c.TrySend(make([]byte, 1000)) == nil {
			continue
		}
		x, y := join(t, b.open(t, Config{}), r)
		warm(t, x, y)
		closeBoth(t, x, y)
		p.signal(t, syscall.SIGCONT)
		p.order(t, "write")
		for i := range 50 {
			n, err := c.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(7, i, i), buf[:n]), "message %d", i)
		}
		require.NoError(t, c.CloseNow())
	})
}
