package efa

import (
	"net"

	"github.com/weft-go/weft/tagged"
)

// write is one message on its way out, or something that waits in line with the
// messages.
type write struct {
	conn *Conn
	next *write
	buf  []byte
	// call waits for the buffer; callback or completion for the end. At most one
	// of them.
	call       *call
	callback   func(error)
	completion *Completion
	// sender is told of the end instead; starting says that it is in Send still. The
	// first headed bytes of head go before buf.
	sender   Sender
	starting bool
	headed   int
	head     [HeadSize]byte
	// copied: the buffer is the caller's at once, whatever the length. lent is
	// that of a WriteBuffer.
	copied bool
	lent   *Buffer
	// flush and pending are for what is no message.
	flush   *flush
	pending *pending
	// owed: it is in Reactor.owed.
	owed bool
	// held counts the operations that use buf, and offset is how much of it they
	// or earlier ones have sent, if the payload goes in several messages.
	held   int
	offset int
	// released is made when somebody gives up waiting for buf.
	released chan struct{}
	// begun: it has its id, and is in the deque.
	begun bool
	// popped: the write is out of the deque, its result is known to all.
	popped bool
	pieces
	// queued is what it counts in a list.
	queued int64
}

// writeList is a FIFO of writes.
type writeList struct {
	head, tail *write
	length     int
	bytes      int64
}

func (l *writeList) push(w *write) {
	if l.tail != nil {
		l.tail.next = w
	} else {
		l.head = w
	}
	l.tail = w
	l.length++
	w.queued = w.size()
	l.bytes += w.queued
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
	l.bytes -= w.queued
	return w
}

// remove takes out a write that is in the list.
func (l *writeList) remove(w *write) {
	if w == l.head {
		l.pop()
		return
	}
	before := l.head
	for before.next != w {
		before = before.next
	}
	if before.next = w.next; w.next == nil {
		l.tail = before
	}
	w.next = nil
	l.length--
	l.bytes -= w.queued
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
	if w.lent != nil {
		r.lent.give(w.lent)
	}
	r.pay(w)
	*w = write{}
	r.freeWrites.push(w)
}

// startWrite is the request of WriteMessage.
func startWrite(r *Reactor, q *request) {
	k, c := q.call, q.conn
	if err := r.writable(c); err != nil {
		k.finish(0, err)
		return
	}
	w := r.newWrite(c, k.buf)
	w.call, k.write, w.lent = k, w, k.lent
	r.enqueue(w)
}

// enqueue begins a write, or has it wait behind those that wait already.
func (r *Reactor) enqueue(w *write) {
	c := w.conn
	switch {
	case c.waiting.length > 0, w.stream && !r.beginPieces(w), !w.stream && !r.room(w):
		c.stats.waits(w)
		c.waiting.push(w)
	case !w.stream:
		r.begin(w)
	}
}

// size is the length of its message.
func (w *write) size() int64 { return int64(w.headed + len(w.buf)) }

// room says whether a write whose turn it is can begin.
func (r *Reactor) room(w *write) bool {
	return w.flush != nil || (w.pending == nil && w.conn.hasRoom(w.size()))
}

// hasRoom says whether a message of n bytes can begin: there is credit for it, or
// on an attached connection, few enough are under way.
func (c *Conn) hasRoom(n int64) bool {
	if c.plain != nil {
		return c.writes.Len() < c.plain.writes
	}
	return c.credit.CanTake(n)
}

// writable says why nothing can be written, if so.
func (r *Reactor) writable(c *Conn) error {
	switch {
	case c.locallyClosed || c.writingEnded || c.closing.Load():
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

// begin gives a write its id and queues its operations; there must be room.
func (r *Reactor) begin(w *write) {
	if w.flush != nil {
		r.beginFlush(w)
		return
	}
	c := w.conn
	if c.plain == nil {
		c.credit.Take(w.size())
	}
	w.begun = true
	if len(w.buf) > c.eagerLimit || w.sender != nil && w.headed == 0 && len(w.buf) > 0 {
		r.sendPair(w, w.buf, w.copied)
	} else if r.sendEager(w, w.buf) {
		r.bufferFree(w)
	}
	if w.lent != nil {
		// The buffer is not its writer's any more.
		r.answer(w, 0, nil)
	}
}

// failLater ends a connection on which an operation failed, but not while its
// lists are being worked on.
func (r *Reactor) failLater(c *Conn, err error) {
	broke := c.broke(err)
	r.later(func() {
		// The peer may be gone, and what it had sent before is read.
		r.takeAllBeside(c)
		r.fail(c, broke.Kind, broke.Cause)
	})
}

// bufferFree lets a waiting writer go on: its buffer was copied.
func (r *Reactor) bufferFree(w *write) {
	w.buf = nil
	r.answer(w, 0, nil)
	if s := w.sender; s != nil {
		w.sender = nil
		if !w.starting {
			s.Sent(Progress{r}, nil)
		}
	}
}

// answer ends the call that waits for a write, if there is one still.
func (r *Reactor) answer(w *write, n int, err error) {
	if k := w.call; k != nil {
		w.call, k.write = nil, nil
		r.pay(w)
		k.finish(n, err)
	}
}

// beginWaiting begins writes that waited for credit.
func (r *Reactor) beginWaiting(c *Conn) {
	for w := c.waiting.head; w != nil; w = c.waiting.head {
		if w.stream {
			if !r.beginPieces(w) {
				break
			}
			c.waiting.pop()
			continue
		}
		if !r.room(w) {
			break
		}
		r.begin(c.waiting.pop())
	}
	if w := c.waiting.head; w != nil && w.pending != nil {
		r.offer(w)
	}
	r.tellWritten(c)
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
		if op.ahead {
			*r.sendsAhead(c, op.lane)++
		}
		w.held--
		if w.offset < len(w.buf) && !w.stream {
			if err == nil {
				err = c.failure
			}
			if err == nil {
				err = r.sendParts(w, op)
			}
			if err != nil {
				// The first error of a write is the one that it ends with.
				r.stopParts(w, op.ticket, c.broke(err))
			}
		}
		if w.held == 0 {
			if w.released != nil {
				close(w.released)
				w.released = nil
			}
			switch {
			case w.stream:
				r.settlePieces(w)
			case w.popped:
				r.freeWrite(w)
			}
		}
	}
	if err != nil && c.failure == nil {
		r.failLater(c, err)
		err = c.broke(err)
	}
	if err == nil {
		c.stats.completion(op.ticket, max(op.group, 1))
	}
	// A ticket is unknown if the write was given up.
	for i := range max(op.group, 1) {
		_ = c.writes.Complete(op.ticket+tagged.Ticket(i), err)
	}
	r.releaseWrites(c)
	if c.failure == nil && c.waiting.head != nil {
		// A stream may have waited for its copies to become fewer.
		r.beginWaiting(c)
	}
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
	if c.plain != nil && c.failure == nil {
		r.beginWaiting(c)
	}
	if c.locallyClosed || c.hungUp {
		r.settleEnd(c)
	}
}

// endWrite tells whoever waits for a write what became of it.
func (r *Reactor) endWrite(w *write, err error) {
	c := w.conn
	if w.stream {
		if err != nil && c.writeFailed == nil {
			c.writeFailed = err
		}
		w.open--
		r.settlePieces(w)
		return
	}
	if err != nil {
		if c.failure != nil {
			err = c.failure
		}
		if c.writeFailed == nil {
			c.writeFailed = err
		}
		err = c.error("write", err)
	}
	if w.held > 0 {
		err = w.inFlight(err)
	}
	r.answer(w, 0, err)
	r.pay(w)
	switch {
	case w.callback != nil:
		c.countError(err)
		r.callbacks.add(w.callback, err)
		w.callback = nil
	case w.completion != nil:
		c.countError(err)
		w.completion.complete(&r.callbacks, err)
		w.completion = nil
	case w.sender != nil:
		s := w.sender
		w.sender = nil
		s.Sent(Progress{r}, err)
	case w.flush != nil:
		r.flushedLocally(c, w.flush, err)
		w.flush = nil
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
		if w.pending != nil {
			r.failPending(w)
			continue
		}
		if w.stream {
			r.stopPieces(w, c.error("write", err))
			continue
		}
		if w.call != nil {
			// A caller need not wait for its turn to hear of it.
			w.lent = nil
			r.answer(w, 0, c.error("write", err))
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
	case k.task != nil:
		k.task.work.Abandon(Progress{r}, err)
	case k.flush != nil:
		k.flush.call, k.flush = nil, nil
		k.finish(0, err)
	case w == nil:
		r.abandonRead(c, k, err)
	case w.stream && w.begun:
		// All was sent; it ends when the device is done with the buffer.
	case w.stream:
		c.waiting.remove(w)
		r.stopPieces(w, err)
		r.beginWaiting(c)
	case !w.begun:
		// Nothing was sent.
		w.lent = nil
		c.waiting.remove(w)
		r.answer(w, 0, err)
		r.freeWrite(w)
		// What came behind may have been waiting for this one only.
		r.beginWaiting(c)
	default:
		if w.held > 0 {
			err = w.inFlight(err)
		}
		r.answer(w, 0, err)
	}
}
