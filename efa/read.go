package efa

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
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

// completed sorts the completion of an operation.
func (r *Reactor) completed(op *operation, done *fabric.Completion) {
	if r.attributes.MasksMissWaiting && done.HasImmediate {
		done.Tag = done.Immediate
	}
	switch op.purpose {
	case lengthReceive:
		r.lengthArrived(op, done)
		r.receiveAgain(op, done.Err)
	case controlReceive:
		r.controlArrived(op, done)
		r.receiveAgain(op, done.Err)
	case payloadReceive:
		if op.conn.plain == nil || !r.sorted(op, done) {
			r.payloadArrived(op, done)
		}
	case plainReceive:
		r.announced(op, done)
	default:
		if done.Err != nil && r.attributes.StallsAfterFailure && op.conn != nil {
			r.stall(op.conn.peer, done.Err)
		}
		r.ended(op, done.Err)
	}
}

// mostFailures is how many shared receives may fail in a row before the device
// counts as broken.
const mostFailures = 1024

// receiveAgain posts a shared receive anew.
func (r *Reactor) receiveAgain(op *operation, err error) {
	// Anybody can send what is too long; that says nothing about the device.
	if r.failures++; err == nil || errors.Is(err, fabric.ErrTruncated) {
		r.failures = 0
	}
	if r.failures > mostFailures {
		r.breakDownLater(err)
		return
	}
	r.shared.push(op)
}

// ended is the end of an operation that brought no data: one that was sent, or
// one that the device never took or let go of.
func (r *Reactor) ended(op *operation, err error) {
	c := op.conn
	switch op.purpose {
	case payloadReceive:
		r.payloadArrived(op, &fabric.Completion{Err: err})
		return
	case messageSend, controlSend:
		gone := operation{purpose: op.purpose, tag: op.tag, ticket: op.ticket, write: op.write, group: op.group}
		// First out of the list, so that an end that this brings about finds
		// the connection without it.
		r.freeOperation(op)
		r.sendEnded(c, &gone, err)
		r.releaseConn(c)
		return
	}
	if err != nil && !r.closed.Load() {
		// Without the shared receives nothing arrives any more.
		r.breakDownLater(err)
	}
	r.freeOperation(op)
}

// lengthArrived takes in a length message.
func (r *Reactor) lengthArrived(op *operation, done *fabric.Completion) {
	c, id := r.sender(done, tagged.KindLength)
	if c == nil {
		return
	}
	message := op.buf[:done.Len]
	if c.gathers && tagged.IsGroup(message) {
		if err := r.groupArrived(c, id, message); err != nil {
			r.fail(c, ErrProtocol, err)
		}
		return
	}
	length, payload, err := tagged.ParseLength(message, r.config.MaxMessage, c.eagerLimit)
	if err == nil {
		err = r.announce(c, id, length)
	}
	if err != nil {
		r.fail(c, ErrProtocol, err)
		return
	}
	if payload != nil {
		r.arrivedWhole(c, id, payload)
		return
	}
	r.receivePayload(c, id)
	r.pump(c)
}

// announce notes a message whose length has arrived, or says what is wrong.
func (r *Reactor) announce(c *Conn, id uint32, length int64) error {
	if length > r.config.MaxMessage {
		return &tagged.LengthError{Problem: tagged.LengthAboveMaximum, Length: length, Limit: r.config.MaxMessage}
	}
	if err := c.granting.Arrived(length); err != nil {
		return err
	}
	if c.arrived++; c.finished && c.arrived > c.remoteCount {
		return fmt.Errorf("a message after the last of %d", c.remoteCount)
	}
	c.stats.arrival(id)
	_, err := c.reads.Arrive(id, inbound{length: length})
	return err
}

// sender finds the connection that a message belongs to, and checks that its
// peer sent it.
func (r *Reactor) sender(done *fabric.Completion, want tagged.Kind) (c *Conn, id uint32) {
	if done.Err == nil {
		kind, connection, n := tagged.ParseTag(done.Tag)
		if c = r.table.find(connection); c != nil && kind == want && c.peer != nil && c.peer.address == done.Source && !c.over {
			return c, n
		}
	}
	// A connection that has ended, somebody who is not the peer, or a message
	// that is too long for any: nothing that a connection should suffer from.
	r.stats.Dropped++
	r.logDropped(done)
	return nil, 0
}

// arrivedWhole takes in a message that came with its length.
func (r *Reactor) arrivedWhole(c *Conn, id uint32, payload []byte) {
	in, _ := c.reads.Get(id)
	c.stats.ReceivedBytes += uint64(len(payload))
	if id == c.reads.Next() && c.readerFor(int64(len(payload))) {
		// Straight to whom it is for.
		k := c.popReader()
		n := copy(k.buf, payload)
		_ = c.reads.Finish(id, nil)
		c.received++
		c.stats.Direct++
		r.consume(c)
		k.finish(n, nil)
	} else {
		in.data = r.shelf.take(len(payload))
		copy(in.data, payload)
		in.whole = true
		_ = c.reads.Finish(id, nil)
		c.received++
	}
	r.pump(c)
	r.answerFlush(c)
	r.settleEnd(c)
}

// mostPayloads is how many payloads of a connection are received at a time, so
// that a peer that announces many and sends none leaves room for others.
const mostPayloads = 8

// receivePayload posts the receive of a payload: to the reader's buffer if one
// waits for just this message, and else to memory of the reactor's own, so that
// the provider need not keep it. A message that alone is longer than the window
// waits for its reader, and one beyond mostPayloads for those before it.
func (r *Reactor) receivePayload(c *Conn, id uint32) {
	in, _ := c.reads.Get(id)
	if c.plain != nil {
		if r.prepare(c, id, in) {
			r.postPayload(c, id, in)
		}
		return
	}
	front := id == c.reads.Next()
	switch {
	case c.receiving >= mostPayloads:
		c.unposted = true
		return
	case front && c.readerFor(in.length) && !c.readers[0].aside:
		in.reader = c.popReader()
		in.data = in.reader.buf[:in.length]
	case in.length <= r.config.WindowBytes || c.locallyClosed || front && len(c.readers) > 0 && c.readers[0].stream:
		in.data = r.shelf.take(int(in.length))
	default:
		return
	}
	r.postPayload(c, id, in)
	if in.receiving() && in.length > r.config.WindowBytes {
		r.sendControl(c, tagged.Control{Type: tagged.ControlReady, Messages: c.consumed + uint64(id-c.reads.Next())})
	}
}

// postPayload posts the receive of a payload, or of its next piece, to where it is
// to go.
func (r *Reactor) postPayload(c *Conn, id uint32, in *inbound) {
	op := r.newOperation(c, payloadReceive)
	op.kind, op.id = fabric.OpTaggedReceive, id
	op.tag = tagged.PayloadTag(c.id, id)
	if !in.receiving() {
		in.asked = in.got
	}
	op.offset = in.asked
	if err := r.lend(op, in.data[in.asked:min(in.asked+c.piece, len(in.data))]); err != nil {
		r.freeOperation(op)
		if in.receiving() {
			// The last of them ends it.
			r.failLater(c, err)
			return
		}
		if k := in.reader; k != nil {
			// It waits in line for the end of the connection.
			c.readers = slices.Insert(c.readers, 0, k)
		}
		in.reader, in.data = nil, nil
		r.failLater(c, err)
		return
	}
	in.asked += len(op.buf)
	if op.ahead = in.receiving(); op.ahead {
		in.ahead++
		r.aheadRoom--
	} else {
		in.op = op
		c.receiving++
	}
	r.payloads.push(op)
}

// receiveOn posts the receives of the next pieces of a message of which one has come.
// Those ahead take only a part of the room: another message's may be before them on
// the way.
func (r *Reactor) receiveOn(c *Conn, id uint32, in *inbound) {
	for int64(in.asked) < in.length && (!in.receiving() || r.aheadRoom > 0 && in.ahead < piecesAtOnce) {
		asked := in.asked
		if r.postPayload(c, id, in); in.asked == asked {
			return
		}
	}
}

// receiveMore posts the receives of payloads that mostPayloads held back.
func (r *Reactor) receiveMore(c *Conn) {
	if !c.unposted || c.failure != nil || c.over {
		return
	}
	c.unposted = false
	first := c.reads.Next()
	for id := first; id-first < uint32(r.config.WindowMessages) && c.receiving < mostPayloads; id++ {
		if in, ok := c.reads.Get(id); ok && !in.receiving() && !in.whole && in.data == nil {
			r.receivePayload(c, id)
		}
	}
	c.unposted = c.receiving >= mostPayloads
}

// payloadArrived is the end of a payload's receive.
func (r *Reactor) payloadArrived(op *operation, done *fabric.Completion) {
	c, id, offset, ahead := op.conn, op.id, op.offset, op.ahead
	r.freeOperation(op)
	defer r.releaseConn(c)
	if ahead {
		r.aheadRoom++
	} else {
		c.receiving--
	}
	in, ok := c.reads.Get(id)
	if !ok {
		return
	}
	if ahead {
		in.ahead--
	} else {
		in.op = nil
	}
	stranger := done.Err == nil && done.Source != c.peer.address && c.failure == nil && !c.over
	if stranger {
		r.stats.Dropped++
	}
	if stranger && !in.receiving() {
		// Somebody else took the peer's name; the payload is still to come.
		r.postPayload(c, id, in)
		return
	}
	want := min(c.piece, int(in.length)-offset)
	if done.Err == nil && done.Len == want && !stranger && c.failure == nil && !c.over {
		c.stats.pieceReceived(want, in.length)
		if in.got += want; int64(in.got) < in.length {
			r.receiveOn(c, id, in)
			return
		}
	}
	err := done.Err
	switch {
	case stranger:
		err = errStranger
	case err == nil && done.Len != want:
		err = fmt.Errorf("a payload of %d bytes where %d were announced", done.Len, want)
	}
	if in.receiving() {
		// A piece is missing, but the device has the buffer until the last has ended.
		r.failPayload(c, err, done.Err)
		return
	}
	defer r.receiveMore(c)
	if in.owner != nil {
		defer close(in.owner.released)
	}
	switch {
	case c.failure != nil || c.over:
		err = c.failure
	case err != nil && errors.Is(err, fabric.ErrCanceled) && (in.reader == nil || in.reader.cancelled != nil):
		// The reader gave up before anything came: the message is for the next.
		if in.reader != nil {
			in.reader.finish(0, in.reader.cancelled)
		}
		in.reader, in.data, in.owner = nil, nil, nil
		r.receivePayload(c, id)
		r.pump(c)
		return
	case err != nil:
		r.failPayload(c, err, done.Err)
	}
	// A failure may have ended the reader, but not moved the message.
	in, ok = c.reads.Get(id)
	if !ok {
		return
	}
	if err != nil {
		if in.reader != nil {
			in.reader.finish(0, c.error("read", c.failure))
			in.reader, in.data = nil, nil
		}
		if in.owner != nil {
			// It is a reader's, and must not come to the shelf.
			in.data = nil
		}
		return
	}
	_ = c.reads.Finish(id, nil)
	c.received++
	c.stats.ReceivedBytes += uint64(in.length)
	in.whole = true
	in.data = in.data[:in.length] // where an id is shared, it is longer
	if in.owner != nil {
		// The device wrote to memory of a reader that gave up, and will have it
		// back: the message moves.
		data := r.shelf.take(len(in.data))
		copy(data, in.data)
		in.data = data
	}
	if k := in.reader; k != nil {
		in.reader = nil
		c.stats.Direct++
		n := len(in.data)
		in.data = nil
		r.consume(c)
		k.finish(n, nil)
	}
	r.pump(c)
	r.answerFlush(c)
	r.settleEnd(c)
}

var errStranger = errors.New("the message of another came in the place of a piece")

// failPayload ends a connection because of a payload; device is what the device says.
func (r *Reactor) failPayload(c *Conn, why, device error) {
	if device == nil || errors.Is(device, fabric.ErrTruncated) {
		r.fail(c, ErrProtocol, why)
	} else {
		// It was announced and cannot be had: on shm, say, its sender is dead.
		r.fail(c, ErrPeerLost, why)
	}
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

// sendControl queues a control message.
func (r *Reactor) sendControl(c *Conn, m tagged.Control) {
	op := r.newOperation(c, controlSend)
	op.tag = tagged.ControlTag(c.remoteID, 0)
	if err := r.fill(op, tagged.ControlSize); err != nil {
		r.freeOperation(op)
		r.failLater(c, err)
		return
	}
	tagged.PutControl(op.buf, m)
	op.kind = r.sendKind(tagged.ControlSize)
	r.arbiter.Push(&c.queue, op)
}

// controlArrived takes in a control message.
func (r *Reactor) controlArrived(op *operation, done *fabric.Completion) {
	c, _ := r.sender(done, tagged.KindControl)
	if c == nil {
		return
	}
	m, err := tagged.ParseControl(op.buf[:done.Len])
	if err == nil {
		switch m.Type {
		case tagged.ControlCredit:
			if err = c.credit.Grant(m.Messages, m.Bytes); err == nil {
				c.credited = max(c.credited, m.Messages)
				c.stats.GrantsReceived++
				r.beginWaiting(c)
			}
		case tagged.ControlFlush:
			r.flushAsked(c, m.Messages)
		case tagged.ControlFlushed:
			err = r.flushConfirmed(c, m.Messages)
		case tagged.ControlReady:
			err = r.readyFor(c, m.Messages)
		}
	}
	if err != nil {
		r.fail(c, ErrProtocol, err)
	}
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
		_ = r.device.Cancel(in.op.token)
		r.stats.Crossings++
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
