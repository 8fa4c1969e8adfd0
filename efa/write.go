package efa

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// ErrWouldBlock says that too many writes wait already; what was to be written
// was not taken.
var ErrWouldBlock = errors.New("efa: too many writes are waiting")

// maxWaiting is how many writes without a goroutine of their own may wait for
// credit on a connection.
const maxWaiting = 4096

// write is one message on its way out.
type write struct {
	conn *Conn
	next *write
	buf  []byte
	// call waits for the buffer; callback for the end. At most one of them.
	call     *call
	callback func(error)
	// held counts the operations that use buf.
	held int
	// released is made when somebody gives up waiting for buf.
	released chan struct{}
	// begun: it has its id, and is in the deque.
	begun bool
	// popped: the write is out of the deque, its result is known to all.
	popped bool
}

// writeList is a FIFO of writes.
type writeList struct {
	head, tail *write
	length     int
}

func (l *writeList) push(w *write) {
	if l.tail != nil {
		l.tail.next = w
	} else {
		l.head = w
	}
	l.tail = w
	l.length++
}

func (l *writeList) pop() *write {
	w := l.head
	if w == nil {
		return nil
	}
	if l.head = w.next; l.head == nil {
		l.tail = nil
	}
	w.next = nil
	l.length--
	return w
}

// remove takes out the write that a call waits for.
func (l *writeList) remove(w *write) {
	var kept writeList
	for v := l.pop(); v != nil; v = l.pop() {
		if v != w {
			kept.push(v)
		}
	}
	*l = kept
}

func (r *Reactor) newWrite(c *Conn, buf []byte) *write {
	w := r.freeWrites.pop()
	if w == nil {
		w = &write{}
	}
	w.conn, w.buf = c, buf
	return w
}

// freeWrite is for a write that nobody waits for and whose buffer is free.
func (r *Reactor) freeWrite(w *write) {
	*w = write{}
	r.freeWrites.push(w)
}

// WriteMessageAsync sends buf as one message and returns without waiting. buf
// belongs to the connection until done is called, exactly once, with nil or
// with what ended the connection. The calls of a connection come in the order of
// writing, from a goroutine of the reactor's, one at a time for all connections
// of the reactor; they may write and close, and should not block for long.
//
// If an error is returned, nothing was taken and done is not called: a message
// that is too long is a *MessageSizeError, and ErrWouldBlock says that thousands
// of writes wait for the reader already.
func (c *Conn) WriteMessageAsync(buf []byte, done func(error)) error {
	if err := c.checkWrite(context.Background(), buf); err != nil {
		return err
	}
	if done == nil {
		done = func(error) {}
	}
	k := newCall(c, buf)
	k.callback = done
	k.request.run = startWrite
	// The wait is for being taken only, which needs nothing from the peer.
	_, err := c.wait(context.Background(), k)
	return err
}

// startWrite is the request of WriteMessage and WriteMessageAsync.
func startWrite(r *Reactor, q *request) {
	k, c := q.call, q.conn
	if err := r.writable(c); err != nil {
		k.finish(0, err)
		return
	}
	async := k.callback != nil
	if async && c.waiting.length >= maxWaiting {
		k.finish(0, ErrWouldBlock)
		return
	}
	w := r.newWrite(c, k.buf)
	if async {
		w.callback = k.callback
	} else {
		w.call, k.write = k, w
	}
	if c.waiting.length > 0 || !r.begin(w) {
		c.waiting.push(w)
	}
	if async {
		k.finish(0, nil)
	}
}

// writable says why nothing can be written, if so.
func (r *Reactor) writable(c *Conn) error {
	switch {
	case c.locallyClosed || c.closing.Load():
		return c.error("write", net.ErrClosed)
	case c.failure != nil:
		return c.error("write", c.failure)
	case r.broken != nil:
		return c.error("write", r.broken)
	case c.peerClosed:
		return c.error("write", ErrPeerClosed)
	}
	return nil
}

// begin gives a write its id and queues its operations, if there is credit.
func (r *Reactor) begin(w *write) bool {
	c := w.conn
	n := len(w.buf)
	if !c.credit.Take(int64(n)) {
		return false
	}
	id := c.nextWrite
	c.nextWrite++
	c.sent++
	// The payload rides in the length message if it is short. Without one,
	// there is no second message in any case.
	eager := n <= c.eagerLimit
	parts := 2
	if eager {
		parts = 1
	}
	w.begun = true
	ticket := c.writes.Push(w, parts)
	size := tagged.LengthSize
	if eager {
		size += n
	}
	length := r.newOperation(c, messageSend)
	length.tag, length.ticket = tagged.LengthTag(c.remoteID, id), ticket
	if err := r.fill(length, size); err != nil {
		// Without memory for its length, the id is lost, and the connection.
		r.freeOperation(length)
		r.neverSent(c, ticket, parts, err)
		return true
	}
	length.kind = r.sendKind(size)
	tagged.PutLength(length.buf, int64(n))
	if eager {
		copy(length.buf[tagged.LengthSize:], w.buf)
		r.arbiter.Push(&c.queue, length)
		r.bufferFree(w)
		return true
	}
	payload := r.newOperation(c, messageSend)
	payload.tag, payload.ticket = tagged.PayloadTag(c.remoteID, id), ticket
	payload.kind = fabric.OpTaggedSend
	if err := r.lend(payload, w.buf); err != nil {
		r.freeOperation(payload)
		r.freeOperation(length)
		r.neverSent(c, ticket, parts, err)
		return true
	}
	payload.write = w
	length.payload = payload
	w.held++
	r.arbiter.Push(&c.queue, length)
	return true
}

// neverSent ends a connection whose write has its id, but no operations that
// could end it: the end of the connection is what releases it.
func (r *Reactor) neverSent(c *Conn, ticket tagged.Ticket, parts int, err error) {
	for range parts {
		_ = c.writes.Complete(ticket, err)
	}
	r.failLater(c, err)
}

// sendKind is how a message in one of the reactor's buffers goes out.
func (r *Reactor) sendKind(size int) fabric.OpKind {
	if size <= r.attributes.MaxInject {
		return fabric.OpTaggedInject
	}
	return fabric.OpTaggedSend
}

// failLater ends a connection on which an operation failed, but not while its
// lists are being worked on.
func (r *Reactor) failLater(c *Conn, err error) {
	r.later(func() {
		if errors.Is(err, fabric.ErrUnreachable) {
			r.fail(c, ErrPeerLost, err)
		} else {
			r.fail(c, &DeviceError{err}, nil)
		}
	})
}

// bufferFree lets a waiting writer go on: its buffer was copied.
func (r *Reactor) bufferFree(w *write) {
	w.buf = nil
	if k := w.call; k != nil {
		w.call, k.write = nil, nil
		k.finish(0, nil)
	}
}

// beginWaiting begins writes that waited for credit.
func (r *Reactor) beginWaiting(c *Conn) {
	for c.waiting.head != nil && r.begin(c.waiting.head) {
		c.waiting.pop()
	}
}

// sendEnded is the end of an operation of a write or of a grant.
func (r *Reactor) sendEnded(c *Conn, op *operation, err error) {
	if op.purpose == controlSend {
		// A grant that a closed peer does not take is none to be missed; the
		// control connection tells how it ended.
		if err != nil && !c.finished {
			r.failLater(c, err)
		}
		return
	}
	if w := op.write; w != nil {
		if w.held--; w.held == 0 {
			if w.released != nil {
				close(w.released)
				w.released = nil
			}
			if w.popped {
				r.freeWrite(w)
			}
		}
	}
	if err != nil && c.failure == nil {
		r.failLater(c, err)
	}
	// A ticket is unknown if the write was given up.
	_ = c.writes.Complete(op.ticket, err)
	r.releaseWrites(c)
}

// releaseWrites ends the writes at the front of the deque that are finished.
func (r *Reactor) releaseWrites(c *Conn) {
	for {
		w, err, ok := c.writes.Pop()
		if !ok {
			break
		}
		r.endWrite(w, err)
	}
	if c.locallyClosed || c.hungUp {
		r.settleEnd(c)
	}
}

// endWrite tells whoever waits for a write what became of it.
func (r *Reactor) endWrite(w *write, err error) {
	c := w.conn
	if err != nil {
		if c.failure != nil {
			err = c.failure
		}
		err = c.error("write", err)
	}
	if w.held > 0 {
		err = w.inFlight(err)
	}
	if k := w.call; k != nil {
		w.call, k.write = nil, nil
		k.finish(0, err)
	}
	if w.callback != nil {
		r.callbacks.add(w.callback, err)
		w.callback = nil
	}
	w.popped = true
	if w.held == 0 {
		r.freeWrite(w)
	}
}

// inFlight makes the error of a call that gives up its buffer to the device.
func (w *write) inFlight(err error) error {
	if w.released == nil {
		w.released = make(chan struct{})
	}
	return &InFlightError{Err: err, Released: w.released}
}

// failWaiting ends the writes that were not begun, after those that were.
func (r *Reactor) failWaiting(c *Conn, err error) {
	for w := c.waiting.pop(); w != nil; w = c.waiting.pop() {
		if k := w.call; k != nil {
			// A caller need not wait for its turn to hear of it.
			w.call, k.write = nil, nil
			k.finish(0, c.error("write", err))
		}
		_ = c.writes.Complete(c.writes.Push(w, 1), err)
	}
	r.releaseWrites(c)
}

// abandon ends the wait of a caller whose context has ended.
func (r *Reactor) abandon(k *call, err error) {
	c := k.conn
	switch w := k.write; {
	case k.done.Load():
	case w == nil:
		r.abandonRead(c, k, err)
	case !w.begun:
		// Nothing was sent.
		c.waiting.remove(w)
		r.freeWrite(w)
		k.finish(0, err)
		// What came behind may have been waiting for this one only.
		r.beginWaiting(c)
	default:
		w.call, k.write = nil, nil
		if w.held > 0 {
			err = w.inFlight(err)
		}
		k.finish(0, err)
	}
}

// callbackQueue runs callbacks, in order, on a goroutine that is there while
// there are any.
type callbackQueue struct {
	mu      sync.Mutex
	queue   []callback
	running bool
}

type callback struct {
	f   func(error)
	err error
}

func (q *callbackQueue) add(f func(error), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, callback{f, err})
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *callbackQueue) run() {
	var batch []callback
	for {
		q.mu.Lock()
		batch, q.queue = q.queue, batch[:0]
		if len(batch) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		for i, c := range batch {
			c.f(c.err)
			batch[i] = callback{}
		}
	}
}
