package efa

import (
	"io"
	"net"
	"time"
)

// inbound is a message whose length has arrived.
type inbound struct {
	length int64
	// data is where the payload is, or is being received to: memory from the
	// shelf, or a reader's. got is how much of it is there, if it comes in pieces,
	// and asked how much there was a receive for.
	data       []byte
	got, asked int
	// reader is who waits for it, if data is the reader's.
	reader *call
	// owner is set once the reader has given up: data is not the shelf's.
	owner *lender
	// op is the receive of the payload, while there is one. Once a piece has come,
	// others for later ones may be ahead.
	op    *operation
	ahead int
	// handled: data is the handler's.
	handled bool
	// whole: the payload is here.
	whole bool
	// counted is how much of plainConn.held is this message's.
	counted int64
}

// lender is a reader that gave up while the device was writing to its buffer.
type lender struct{ released chan struct{} }

// receiving says that the device has its data, or is to.
func (in *inbound) receiving() bool { return in.op != nil || in.ahead > 0 }

// abandon ends the wait of the reader whose buffer is being received to.
func (in *inbound) abandon(err error) {
	in.owner = &lender{released: make(chan struct{})}
	in.reader.finish(0, &InFlightError{Err: err, Released: in.owner.released})
	in.reader = nil
}

// consume pops the front, which a reader has had, and grants credit when due.
func (r *Reactor) consume(c *Conn) {
	in, _, ok := c.reads.Pop()
	if !ok {
		return
	}
	c.consumed++
	c.taken = 0
	r.countRead(c)
	if in.data != nil {
		r.shelf.give(in.data)
	}
	if c.plain != nil {
		r.consumed(c, in.counted)
		return
	}
	// A peer that has closed writes no more, and its device may be gone.
	if !c.granting.Consumed(in.length) || c.failure != nil || c.over || c.finished {
		return
	}
	c.stats.GrantsSent++
	r.sendControl(c, c.granting.Grant())
}

func (c *Conn) popReader() *call {
	k := c.readers[0]
	n := copy(c.readers, c.readers[1:])
	c.readers[n] = nil
	c.readers = c.readers[:n]
	return k
}

// readerFor says whether a reader waits that has room for a message of n bytes.
func (c *Conn) readerFor(n int64) bool {
	return len(c.readers) > 0 && !c.readers[0].size && n <= int64(len(c.readers[0].buf))
}

// startRead is the request of ReadMessage, MessageSize and Stream.Read.
func startRead(r *Reactor, q *request) {
	c := q.conn
	c.readers = append(c.readers, q.call)
	r.pump(c)
}

// pump gives the messages at the front to those who wait for them.
func (r *Reactor) pump(c *Conn) {
	if c.handler != nil && !c.locallyClosed {
		r.handOut(c)
		return
	}
	for c.locallyClosed {
		// Nobody will read any more, but the peer's writes are still in order.
		if _, _, _, finished, _ := c.reads.Front(); !finished {
			break
		}
		r.consume(c)
	}
	if c.locallyClosed && c.failure == nil && !c.over {
		if id, in, arrived, _, _ := c.reads.Front(); arrived && !in.receiving() {
			r.receivePayload(c, id)
		}
	}
	for len(c.readers) > 0 {
		id, in, arrived, finished, _ := c.reads.Front()
		k := c.readers[0]
		switch {
		case c.locallyClosed:
			c.popReader().finish(0, c.error("read", net.ErrClosed))
		case arrived && k.size && (finished || c.failure == nil):
			c.popReader().finish(int(in.length)-c.taken, nil)
		case finished && k.stream:
			r.takeBytes(c)
		case arrived && !k.stream && in.length-int64(c.taken) > int64(len(k.buf)) && (finished || c.failure == nil):
			c.popReader().finish(0, &MessageSizeError{Size: in.length - int64(c.taken), Limit: int64(len(k.buf))})
		case finished:
			c.popReader()
			c.attended, c.overdue = true, false
			n := copy(k.buf, in.data[c.taken:])
			r.consume(c)
			k.finish(n, nil)
		case c.finished && !arrived && c.received >= c.remoteCount:
			// Nothing is missing, whatever became of the connection since.
			c.popReader().finish(0, io.EOF)
		case c.failure != nil:
			c.popReader().finish(0, c.error("read", c.failure))
		case arrived && !in.receiving():
			r.receivePayload(c, id)
			return
		default:
			return
		}
	}
}

// abandonRead ends the wait of a reader whose context has ended.
func (r *Reactor) abandonRead(c *Conn, k *call, err error) {
	for i, other := range c.readers {
		if other == k {
			c.readers = append(c.readers[:i], c.readers[i+1:]...)
			k.finish(0, err)
			return
		}
	}
	// The front is being received to its buffer.
	in, ok := c.reads.Get(c.reads.Next())
	if !ok || in.reader != k {
		return
	}
	r.abandoned++
	number := r.abandoned
	k.cancelled, k.abandoned = err, number
	// What came of it in pieces already would be lost.
	if in.op != nil && in.op.posted && in.got == 0 {
		r.cancel(in.op)
	}
	if k.stream {
		// It waits until it has its buffer back.
		return
	}
	time.AfterFunc(letGoOfRead, func() {
		r.submit(func() {
			if in, ok := c.reads.Get(c.reads.Next()); ok && in.reader == k && k.abandoned == number {
				in.abandon(err)
			}
		})
	})
}

// letGoOfRead is how long the device has to let go of the buffer of a reader
// whose context has ended.
const letGoOfRead = 100 * time.Millisecond
