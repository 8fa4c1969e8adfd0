package efa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/fabric"
)

// Handler takes the messages of a connection where they come, instead of
// ReadMessage: it is for engines on top of connections, such as package comm. Its
// methods are called in the progress role of the connection's reactor, by whichever
// goroutine drives it, one at a time for all connections of that reactor. They must
// not block, nor call anything of this package but methods of the Progress that
// they get.
type Handler interface {
	// Message is called with each message that came together with its length, in
	// order. message is the reactor's, and may be read during the call only. If the
	// result is false, the message is not taken, the peer gets no credit for it, and
	// it is offered again after Progress.Resume; so are those behind it.
	Message(p Progress, message []byte) bool
	// Payload is called with the length of each message that comes on its own, when
	// all before it were taken. It returns the memory that the message is to be
	// received to, of exactly that length, which is the reactor's until Received; or
	// nil, which is as the false of Message.
	Payload(p Progress, length int) []byte
	// Received is called when the reactor is done with memory that Payload
	// returned. With an error the connection has ended, and an *InFlightError says
	// that the device still has the memory.
	Received(p Progress, memory []byte, err error)
	// Ended is called once, after everything else but what was not taken, which is
	// still offered after Resume: with io.EOF if the peer has closed and everything was
	// taken, else with what ended the connection. It is not called after Close or
	// CloseNow of this side, when nothing is any more but Received.
	Ended(p Progress, why error)
}

// Sender hears of the end of a message of Progress.Send. It is comparable: a pointer,
// say.
type Sender interface {
	// Sent is called in the progress role when the payload is the caller's again:
	// with nil, or with what ended the connection. An *InFlightError says that the
	// device still has the payload.
	Sent(p Progress, err error)
}

// Work is what a goroutine has done in the progress role, and waits for.
type Work interface {
	// Start is called once, in the role.
	Start(p Progress)
	// Abandon is called in the role if the context of Reactor.Await has ended before
	// Finish. It says Finish now, or sees to it that somebody does soon.
	Abandon(p Progress, why error)
}

// Task is the place of a goroutine's wait. It may be used again after Await has
// returned, with the same reactor, and must not be copied.
type Task struct {
	call call
	work Work
}

// Expect says, before the wait for t begins, how many bytes have to be moved until it ends.
// While they are, it is worth more to look on than to sleep. It is about one wait; 0 is for
// what is short, as without it.
func (t *Task) Expect(bytes int) {
	t.call.patience = min(time.Duration(bytes)*patiencePerByte, mostPatience)
}

// Expect is Task.Expect of a task that has been started, once it is known what is to be moved.
// Somebody waits for it, and Finish comes.
func (p Progress) Expect(t *Task, bytes int) {
	t.Expect(bytes)
	p.reactor.oweTask(&t.call)
}

// Progress is the progress role of a reactor, for the call that it is handed to.
type Progress struct{ reactor *Reactor }

// HeadSize is the most that Send puts before a payload, in bytes.
const HeadSize = 48

// Handle has the messages of the connection taken by h, those included that have
// come already. There must be no ReadMessage under way, and none afterwards. h is
// for this connection only, for as long as that lives.
func (c *Conn) Handle(h Handler) {
	c.reactor.do(func() {
		c.handler = h
		c.reactor.pump(c)
	})
}

// EagerLimit is the longest message in bytes that goes out together with its
// length, and so to the peer's Handler.Message.
func (c *Conn) EagerLimit() int { return c.eagerLimit }

// Begin has w started in the progress role, at once if nobody else drives, and
// returns. t must not be in use.
func (r *Reactor) Begin(t *Task, w Work) {
	t.begin(w)
	r.push(&t.call.request)
	r.Poll()
}

// Await waits until Progress.Finish was called for t, and returns its error. If ctx
// ends first, Work.Abandon is called, and it waits on. It drives the reactor, if
// nobody else does. It is for one goroutine.
func (r *Reactor) Await(ctx context.Context, t *Task) error {
	r.await(ctx, &t.call, false)
	return t.call.err
}

// Run is Begin and Await, without a turn in between that somebody else would need.
func (r *Reactor) Run(ctx context.Context, t *Task, w Work) error {
	// A context that is nil panics here, where nobody leads who would not let go of it.
	_ = ctx.Done()
	t.begin(w)
	led := r.lead()
	if led {
		// Who leads need not hand it to itself.
		r.takeIn()
		startTask(r, &t.call.request)
	} else {
		r.push(&t.call.request)
	}
	r.await(ctx, &t.call, led)
	return t.call.err
}

// Poll takes a turn, if nobody else drives.
func (r *Reactor) Poll() {
	if r.lead() {
		r.step(0)
		r.release()
	}
}

// Do has f called in the progress role, and waits for its return. f must not block, nor call
// anything of a Conn or of the reactor but methods of p: the reactor would stand still for
// ever.
func (r *Reactor) Do(f func(p Progress)) { r.do(func() { f(Progress{r}) }) }

// Done says that Await would return at once.
func (t *Task) Done() bool { return t.call.done.Load() }

func (t *Task) begin(w Work) {
	k := &t.call
	if k.bell == nil {
		k.bell = make(chan struct{}, 1)
	}
	select {
	case <-k.bell:
	default:
	}
	t.work = w
	k.err = nil
	k.done = atomic.Bool{}
	k.task = t
	k.request.call, k.request.run = k, startTask
}

func startTask(r *Reactor, q *request) {
	r.oweTask(q.call)
	q.call.task.work.Start(Progress{r})
}

// Finish ends the wait for t.
func (p Progress) Finish(t *Task, err error) {
	p.reactor.payTask(&t.call)
	t.call.finish(0, err)
}

// Send sends head and payload as one message behind all others of the connection,
// whatever room its peer has. If the result is true, the message was copied, and
// payload is the caller's. Otherwise payload is the reactor's until s.Sent is called,
// never in this call; with an error nothing was taken, and it is not called.
//
// Together the two must not be longer than the EagerLimit, nor head longer than
// HeadSize; without a payload s may be nil, and nobody hears. Without a head, a payload may have any length, and goes on its own: to
// the Payload of the peer's Handler.
func (p Progress) Send(c *Conn, head, payload []byte, s Sender) (done bool, err error) {
	r := p.reactor
	if err := r.writable(c); err != nil {
		return false, err
	}
	if s == nil && len(payload) > 0 {
		return false, fmt.Errorf("efa: %w: a payload without a Sender", fabric.ErrInvalid)
	}
	if n := int64(len(head) + len(payload)); n > c.maxMessage {
		return false, &MessageSizeError{Size: n, Limit: c.maxMessage, Writing: true}
	}
	if n := len(head) + len(payload); len(head) > HeadSize || len(head) > 0 && n > c.eagerLimit {
		return false, &MessageSizeError{Size: int64(n), Limit: int64(c.eagerLimit), Writing: true}
	}
	w := r.newWrite(c, payload)
	w.headed = copy(w.head[:], head)
	w.sender, w.starting = s, true
	r.enqueue(w)
	w.starting = false
	return w.sender == nil, nil
}

// Withdraw takes back a message of Send that has not begun, because the peer had no
// room for it, and says whether it could: then s.Sent is not called any more.
func (p Progress) Withdraw(c *Conn, s Sender) bool {
	for w := c.waiting.head; w != nil; w = w.next {
		if w.sender == s {
			c.waiting.remove(w)
			p.reactor.freeWrite(w)
			p.reactor.beginWaiting(c)
			return true
		}
	}
	return false
}

// Waiting are the senders of the messages that Withdraw would take back.
func (p Progress) Waiting(c *Conn) (all []Sender) {
	for w := c.waiting.head; w != nil; w = w.next {
		if w.sender != nil {
			all = append(all, w.sender)
		}
	}
	return all
}

// Resume offers what a Handler has not taken again.
func (p Progress) Resume(c *Conn) {
	if c.held {
		c.held = false
		p.reactor.pump(c)
	}
}

// Later has f called in the progress role, after what is being done now.
func (p Progress) Later(f func(Progress)) {
	p.reactor.later(func() { f(p) })
}

// Fail ends a connection for what its peer did: with ErrProtocol.
func (p Progress) Fail(c *Conn, why error) {
	// Not while lists of the connection are being worked on.
	p.reactor.later(func() { p.reactor.fail(c, ErrProtocol, why) })
}

// handOut hands the messages at the front to the connection's handler.
func (r *Reactor) handOut(c *Conn) {
	for {
		if c.held {
			// It may be for ever, and others wait to hear of the end.
			if c.failure != nil {
				r.tell(c, c.failure)
			}
			return
		}
		id, in, arrived, finished, _ := c.reads.Front()
		switch {
		case finished && in.handled:
			r.consume(c)
		case finished:
			if c.held = !c.handler.Message(Progress{r}, in.data[c.taken:]); !c.held {
				r.consume(c)
			}
		case arrived && in.handled && in.receiving() && in.owner == nil:
			return
		case c.finished && !arrived && c.received >= c.remoteCount:
			// Nothing is missing, whatever became of the connection since.
			r.tell(c, io.EOF)
			return
		case c.failure != nil:
			r.tell(c, c.failure)
			return
		case !arrived:
			return
		default:
			if c.receiving >= mostPayloads {
				c.unposted = true
				return
			}
			in.data = c.handler.Payload(Progress{r}, int(in.length))
			if c.held = in.data == nil; c.held {
				continue
			}
			in.handled = true
			r.beginPayload(c, id, in)
			return
		}
	}
}

// tell tells the handler of the end, once.
func (r *Reactor) tell(c *Conn, why error) {
	if !c.told {
		c.told = true
		c.handler.Ended(Progress{r}, why)
	}
}

// handBack ends the handler's wait for memory that a message is received to.
func (r *Reactor) handBack(c *Conn, in *inbound, err error) {
	memory := in.data
	in.data = nil
	if err != nil && in.owner == nil {
		var e *ConnError
		if !errors.As(err, &e) {
			err = c.error("read", err)
		}
	}
	c.handler.Received(Progress{r}, memory, err)
}
