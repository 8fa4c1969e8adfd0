package efa

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// collector is a Handler that refuses some of what it is offered, once each.
type collector struct {
	conn    *Conn
	refuse  func() bool
	refused bool
	got     [][]byte
	ended   chan error
	count   chan int
}

func collect(c *Conn, refuse func() bool) *collector {
	h := &collector{conn: c, refuse: refuse, ended: make(chan error, 2), count: make(chan int, 1000)}
	c.Handle(h)
	return h
}

// refuses says whether to refuse, and asks to be offered it again.
func (h *collector) refuses(p Progress) bool {
	if h.refused = !h.refused && h.refuse != nil && h.refuse(); h.refused {
		p.Later(func(p Progress) { p.Resume(h.conn) })
	}
	return h.refused
}

func (h *collector) Message(p Progress, m []byte) bool {
	if h.refuses(p) {
		return false
	}
	h.got = append(h.got, append([]byte{}, m...))
	h.count <- len(h.got)
	return true
}

func (h *collector) Payload(p Progress, length int) []byte {
	if h.refuses(p) {
		return nil
	}
	return make([]byte, length)
}

func (h *collector) Received(_ Progress, memory []byte, err error) {
	if err == nil {
		h.got = append(h.got, memory)
		h.count <- len(h.got)
	}
}

func (h *collector) Ended(_ Progress, why error) { h.ended <- why }

// wait waits until there are so many messages.
func (h *collector) wait(t *testing.T, count int) {
	t.Helper()
	for {
		select {
		case n := <-h.count:
			if n == count {
				return
			}
		case <-deadline(t).Done():
			t.Fatalf("%d messages do not come", count)
		}
	}
}

// told is a Sender that waits.
type told chan error

func (s told) Sent(_ Progress, err error) { s <- err }

// handOver has a message sent as an engine does, and returns when its payload is free.
func handOver(t *testing.T, c *Conn, head, payload []byte) error {
	t.Helper()
	s := make(told, 1)
	var done bool
	var err error
	c.reactor.do(func() { done, err = Progress{c.reactor}.Send(c, head, payload, s) })
	if done || err != nil {
		return err
	}
	select {
	case err := <-s:
		return err
	case <-deadline(t).Done():
		return context.DeadlineExceeded
	}
}

// A Handler gets what was sent, in order, though it refuses some at first.
func TestHandler(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.connect(t, Config{EagerLimit: 500, WindowMessages: 8, WindowBytes: 20_000})
		rng := rand.New(rand.NewPCG(1, 2))
		// Some have come before there is a handler.
		var want [][]byte
		send := func(head, size int) {
			m := message(1, len(want), head+size)
			want = append(want, m)
			require.NoError(t, handOver(t, from, m[:head:head], m[head:]))
		}
		for i := range 5 {
			send(i*10, i*20)
		}
		h := collect(to, func() bool { return rng.IntN(3) == 0 })
		for i := range 60 {
			switch i % 4 {
			case 0:
				send(0, 1+i*37) // on its own, whatever the length
			case 1:
				send(HeadSize, 100)
			case 2:
				send(16, 8)
			default:
				send(0, 30_000) // longer than the window
			}
		}
		h.wait(t, len(want))
		closeBoth(t, from, to)
		require.Equal(t, want, h.got)
	})
}

// The end of a connection, in order and not, is told once.
func TestHandlerHearsOfTheEnd(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, orderly := range []bool{true, false} {
			from, to := b.connect(t, Config{})
			h := collect(to, nil)
			require.NoError(t, handOver(t, from, []byte("head"), []byte("rest")))
			h.wait(t, 1)
			if orderly {
				require.NoError(t, from.Close())
				require.Equal(t, io.EOF, <-h.ended)
			} else {
				require.NoError(t, from.CloseNow())
				require.ErrorIs(t, <-h.ended, ErrPeerLost)
				require.ErrorIs(t, handOver(t, to, nil, []byte("x")), ErrPeerLost)
			}
			_ = to.Close()
			require.Empty(t, h.ended)
			require.ErrorIs(t, handOver(t, to, nil, []byte("x")), net.ErrClosed)
		}
	})
}

// Who never takes a message hears of the end all the same.
func TestHandlerThatTakesNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, size := range []int{10, 50_000} {
			from, to := b.connect(t, Config{})
			held := make(chan struct{}, 1)
			h := &refuser{held: held, ended: make(chan error, 1)}
			to.Handle(h)
			s := make(told, 1)
			var err error
			from.reactor.do(func() { _, err = Progress{from.reactor}.Send(from, nil, make([]byte, size), s) })
			require.NoError(t, err)
			<-held
			require.NoError(t, from.CloseNow())
			require.ErrorIs(t, <-h.ended, ErrPeerLost)
			_ = to.CloseNow()
		}
	})
}

// refuser is a Handler that takes nothing.
type refuser struct {
	held  chan struct{}
	ended chan error
}

func (h *refuser) Message(Progress, []byte) bool    { h.held <- struct{}{}; return false }
func (h *refuser) Payload(Progress, int) []byte     { h.held <- struct{}{}; return nil }
func (h *refuser) Received(Progress, []byte, error) {}
func (h *refuser) Ended(_ Progress, why error)      { h.ended <- why }

// What is too long is refused before anything is sent.
func TestHandlerSizes(t *testing.T) {
	from, to := newBed(t, settings[0]).connect(t, Config{EagerLimit: 100, MaxMessage: 1000})
	for _, wrong := range [][2]int{{HeadSize + 1, 0}, {40, 61}, {0, 1001}} {
		var tooLong *MessageSizeError
		require.ErrorAs(t, handOver(t, from, make([]byte, wrong[0]), make([]byte, wrong[1])), &tooLong)
	}
	require.NoError(t, handOver(t, from, make([]byte, 40), make([]byte, 60)))
	_ = from.CloseNow()
	_ = to.CloseNow()
}

// A message that waits for room can be taken back, one that has begun cannot.
func TestWithdrawOfASend(t *testing.T) {
	from, to := newBed(t, settings[0]).connect(t, Config{WindowMessages: 2})
	var senders []told
	for range 4 {
		s := make(told, 1)
		senders = append(senders, s)
		var err error
		from.reactor.do(func() { _, err = Progress{from.reactor}.Send(from, []byte("h"), []byte("x"), s) })
		require.NoError(t, err)
	}
	var waiting []Sender
	from.reactor.do(func() { waiting = Progress{from.reactor}.Waiting(from) })
	require.Equal(t, []Sender{senders[2], senders[3]}, waiting)
	for i, s := range senders {
		var withdrawn bool
		from.reactor.do(func() { withdrawn = Progress{from.reactor}.Withdraw(from, s) })
		require.Equal(t, i >= 2, withdrawn)
	}
	_ = from.CloseNow()
	_ = to.CloseNow()
	for _, s := range senders[2:] {
		require.Empty(t, s)
	}
}

// place is a Work that tells what became of it.
type place struct {
	task     Task
	started  chan struct{}
	given    error
	finished bool
}

func (w *place) Start(p Progress) {
	close(w.started)
	if w.finished {
		p.Finish(&w.task, w.given)
	}
}

func (w *place) Abandon(p Progress, why error) { p.Finish(&w.task, errors.Join(w.given, why)) }

// A task is started once, and waited for until it is finished or its context ends.
func TestTask(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		r := b.open(t, Config{})
		mine := errors.New("mine")
		w := &place{started: make(chan struct{}), finished: true, given: mine}
		require.Equal(t, mine, r.Run(deadline(t), &w.task, w))
		require.True(t, w.task.Done())
		// The same place again.
		w.started, w.finished = make(chan struct{}), false
		r.Begin(&w.task, w)
		<-w.started
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := r.Await(ctx, &w.task)
		require.ErrorIs(t, err, mine)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// What was handed over before a Run begins before it.
func TestRunBeginsBehindOthers(t *testing.T) {
	b := newBed(t, settings[0])
	dialed, accepted := b.connect(t, Config{})
	r := dialed.reactor
	for range 200 {
		first, w := false, &place{started: make(chan struct{}), finished: true}
		for !r.lead() {
			runtime.Gosched()
		}
		// As Begin does while somebody else leads, who is about to leave.
		r.later(func() {
			select {
			case <-w.started:
			default:
				first = true
			}
		})
		r.role.Store(0)
		require.NoError(t, r.Run(deadline(t), &w.task, w))
		r.do(func() {})
		require.True(t, first)
	}
	closeBoth(t, dialed, accepted)
}

// A task for which much is moved is owed as long as it goes on, however it ends, and no longer:
// the background would spin for nothing.
func TestTaskThatExpectsMuch(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		r := b.open(t, Config{})
		owed := func() (count int32, patience time.Duration) {
			r.do(func() { count, patience = r.owed.count.Load(), r.owed.patience })
			return count, patience
		}
		for _, bytes := range []int{0, 1 << 10, 1 << 50} {
			w := &place{started: make(chan struct{})}
			w.task.Expect(bytes)
			r.Begin(&w.task, w)
			<-w.started
			count, spins := owed()
			require.Equal(t, bytes > 0, count == 1, "%d bytes", bytes)
			require.LessOrEqual(t, spins, mostPatience)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			require.ErrorIs(t, r.Await(ctx, &w.task), context.DeadlineExceeded)
			count, spins = owed()
			require.Zero(t, count)
			require.Zero(t, spins)
			w.started, w.finished = make(chan struct{}), true
			require.NoError(t, r.Run(deadline(t), &w.task, w))
			count, _ = owed()
			require.Zero(t, count)
		}
	})
}

// Memory of a peer is read where the device can.
func TestRead(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.connect(t, Config{RemoteMemory: true})
		data := message(1, 1, 100_000)
		var e *Exposure
		var err error
		from.reactor.do(func() { e, err = Progress{from.reactor}.Expose(data) })
		require.Equal(t, fabrictest.ReadsMemory(b.Provider), from.reactor.CanRead())
		s := make(told, 1)
		buf := make([]byte, 50_000)
		if !from.reactor.CanRead() {
			if from.reactor.CanWrite() {
				require.NoError(t, err)
				from.reactor.do(func() { err = e.Close() })
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, fabric.ErrNotSupported)
			}
			to.reactor.do(func() { err = Progress{to.reactor}.Read(to, buf, fabric.Remote{}, s) })
			require.ErrorIs(t, err, fabric.ErrNotSupported)
		} else {
			require.NoError(t, err)
			at := e.Remote
			at.Address += 50_000
			to.reactor.do(func() { err = Progress{to.reactor}.Read(to, buf, at, s) })
			require.NoError(t, err)
			select {
			case err := <-s:
				require.NoError(t, err)
			case <-deadline(t).Done():
				t.Fatal("the read does not end")
			}
			require.Equal(t, data[50_000:], buf)
			from.reactor.do(func() { err = e.Close() })
			require.NoError(t, err)
		}
		closeBoth(t, from, to)
		to.reactor.do(func() { err = Progress{to.reactor}.Read(to, buf, fabric.Remote{}, s) })
		require.Error(t, err)
	})
}

// A Sender that gives up reads has all memory back at once.
func TestReadsThatAreGivenUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" {
			return
		}
		from, to := b.connect(t, Config{})
		r := to.reactor
		one, other := make(told, 2), make(told, 2)
		var reads []*operation
		r.do(func() {
			for _, s := range []told{one, one, other} {
				op := r.newOperation(to, remoteAccess)
				op.accessor = s
				reads = append(reads, op)
			}
			r.giveUpAccesses(to)
		})
		released := func(s told) <-chan struct{} {
			var in *InFlightError
			require.ErrorAs(t, <-s, &in)
			return in.Released
		}
		first, again, others := released(one), released(one), released(other)
		require.Equal(t, first, again)
		end := func(op *operation) { r.do(func() { r.accessEnded(op, errors.New("ended")) }) }
		isClosed := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		end(reads[0])
		require.False(t, isClosed(first))
		end(reads[2])
		require.True(t, isClosed(others))
		require.False(t, isClosed(first))
		end(reads[1])
		require.True(t, isClosed(first))
		closeBoth(t, from, to)
	})
}

// A message of which nobody hears has no payload.
func TestSendNobodyHears(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Name != "fake" {
			return
		}
		from, to := b.connect(t, Config{})
		var err error
		from.reactor.do(func() { _, err = Progress{from.reactor}.Send(from, []byte("head"), []byte("payload"), nil) })
		require.ErrorIs(t, err, fabric.ErrInvalid)
		from.reactor.do(func() { _, err = Progress{from.reactor}.Send(from, []byte("head"), nil, nil) })
		require.NoError(t, err)
		buf := make([]byte, 10)
		n, err := to.ReadMessage(deadline(t), buf)
		require.NoError(t, err)
		require.Equal(t, "head", string(buf[:n]))
		closeBoth(t, from, to)
	})
}
