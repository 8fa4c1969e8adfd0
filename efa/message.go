package efa

import (
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// What a message becomes: one operation with its payload in the length message, or
// a length message and a payload, which may be several.

// sendEager queues a message whose payload rides in its length message, and says
// whether it has copied buf. Without payload, there is no second message in any
// case.
func (r *Reactor) sendEager(w *write, buf []byte) bool {
	c := w.conn
	c.stats.Eager++
	head := w.head[:w.headed]
	size := len(head) + len(buf)
	id, ticket := c.nextID(size), c.writes.Push(w, 1)
	if r.sendBeside(c, id, ticket, size, head, buf) {
		return true
	}
	if c.gathers && c.gathering.isNext(ticket) && r.gather(c.gathering, head, buf) {
		return true
	}
	op := r.lengthMessage(c, id, ticket, tagged.LengthSize+size, size, 1)
	if op == nil {
		return false
	}
	copy(op.buf[tagged.LengthSize:], head)
	copy(op.buf[tagged.LengthSize+len(head):], buf)
	if c.gathers && size <= tagged.MaxGrouped {
		op.group = 1
		c.gathering = op
	}
	r.arbiter.Push(&c.queue, op)
	return true
}

// sendPair queues a message as the length message and the payload message. If
// copies is set, the device gets a copy of the payload.
func (r *Reactor) sendPair(w *write, buf []byte, copies bool) {
	c, n := w.conn, len(buf)
	if !copies {
		c.stats.ZeroCopy++
	}
	parts := 1 + c.payloads(n)
	id, ticket := c.nextID(n), c.writes.Push(w, parts)
	c.gathering = nil
	var length *operation
	if r.sendBeside(c, id, ticket, n, nil, nil) {
		parts--
	} else if length = r.lengthMessage(c, id, ticket, tagged.LengthSize, n, parts); length == nil {
		return
	}
	if !w.stream {
		buf = w.nextPart()
	}
	c.stats.payload(len(buf), n)
	payload, err := r.payload(w, buf, tagged.PayloadTag(c.remoteID, id), ticket, c.lane(int64(n), id, 0), copies)
	if err != nil {
		if length != nil {
			r.freeOperation(length)
		}
		r.neverSent(c, ticket, parts, err)
		return
	}
	switch {
	case uint64(n) > c.peerWindow:
		// The provider would have to keep it until the reader comes.
		c.parked, c.parkedAt = payload, c.sent-1
		c.stats.Held++
	case length != nil:
		length.payload = payload
	default:
		r.pushPart(payload)
	}
	if length != nil {
		r.arbiter.Push(&c.queue, length)
	}
}

// payload makes the operation of a payload message.
func (r *Reactor) payload(w *write, buf []byte, tag uint64, ticket tagged.Ticket, lane uint8, copies bool) (*operation, error) {
	op := r.newOperation(w.conn, messageSend)
	op.tag, op.ticket, op.lane, op.isPayload = tag, ticket, lane, true
	op.kind = fabric.OpTaggedSend
	var err error
	switch {
	case copies:
		err = r.lendCopy(op, buf)
	case w.lent != nil:
		op.buf, op.descriptor, op.fixed = buf, w.lent.descriptorFor(op), true
	default:
		err = r.lend(op, buf)
	}
	if err != nil {
		r.freeOperation(op)
		return nil, err
	}
	if copies && !w.stream {
		r.bufferFree(w)
	} else if !copies {
		op.write = w
		w.held++
	}
	return op, nil
}

// lendCopy gives an operation a copy of buf, which it keeps until its end.
func (r *Reactor) lendCopy(op *operation, buf []byte) error {
	memory := r.shelf.take(len(buf))
	copy(memory, buf)
	if err := r.lend(op, memory); err != nil {
		r.shelf.give(memory)
		return err
	}
	op.copied = memory
	op.conn.copied += len(memory)
	return nil
}

// payloads is the number of payload messages for n bytes.
func (c *Conn) payloads(n int) int { return (n-1)/c.piece + 1 }

// nextPart is what the next payload message of a write carries.
func (w *write) nextPart() []byte {
	part := w.buf[w.offset:min(w.offset+w.conn.piece, len(w.buf))]
	w.offset += len(part)
	return part
}

// sendAhead goes on with a payload of which a part was posted, and so the length too.
func (r *Reactor) sendAhead(op *operation) {
	w := op.write
	if w.stream {
		return
	}
	if err := r.sendParts(w, op); err != nil {
		r.stopParts(w, op.ticket, err)
		r.failLater(w.conn, err)
	}
}

// sendParts begins parts of a payload, of which one was sent: one if none is under
// way, and as many more as there is room for.
func (r *Reactor) sendParts(w *write, like *operation) error {
	c := w.conn
	for w.offset < len(w.buf) {
		lane := c.lane(int64(len(w.buf)), uint32(like.tag), w.offset/c.piece)
		room := r.sendsAhead(c, lane)
		ahead := w.held > 0
		if ahead && (!r.attributes.KeepsOrder || w.held >= c.piecesAtOnce() || *room <= 0) {
			return nil
		}
		next, err := r.sendPart(w, like, lane)
		if err != nil {
			return err
		}
		if next.ahead = ahead; ahead {
			*room--
		}
	}
	return nil
}

// stopParts ends the parts of a payload that were not begun.
func (r *Reactor) stopParts(w *write, ticket tagged.Ticket, err error) {
	for range w.conn.payloads(len(w.buf) - w.offset) {
		_ = w.conn.writes.Complete(ticket, err)
	}
	w.offset = len(w.buf)
}

// sendPart goes on with a payload of which a part was sent.
func (r *Reactor) sendPart(w *write, like *operation, lane uint8) (*operation, error) {
	part := w.nextPart()
	op, err := r.payload(w, part, like.tag, like.ticket, lane, false)
	if err != nil {
		w.offset -= len(part)
		return nil, err
	}
	w.conn.stats.payload(len(part), len(w.buf))
	r.pushPart(op)
	return op, nil
}

// readyFor takes in that the peer receives the payload of a message that is longer
// than its window: the one after that many messages. It may say so again, if a
// reader gave up and another came.
func (r *Reactor) readyFor(c *Conn, before uint64) error {
	if before >= c.sent {
		return &tagged.CreditError{Problem: tagged.CreditFalseGrant, Messages: before, MessageLimit: c.sent}
	}
	if op := c.parked; op != nil && c.parkedAt == before {
		c.parked = nil
		r.pushPart(op)
	}
	return nil
}

// nextID is the id of the next message, which has n bytes.
func (c *Conn) nextID(n int) uint32 {
	c.stats.SentBytes += uint64(n)
	id := c.nextWrite
	c.nextWrite++
	c.sent++
	return id
}

// lengthMessage makes the operation of a length message of the given size, for a
// message of n bytes that is finished by so many completions. Without memory for
// it, the id is lost, and the connection; then it is nil.
func (r *Reactor) lengthMessage(c *Conn, id uint32, ticket tagged.Ticket, size, n, parts int) *operation {
	op := r.newOperation(c, messageSend)
	op.tag, op.ticket = tagged.LengthTag(c.remoteID, id), ticket
	if err := r.fill(op, size); err != nil {
		r.freeOperation(op)
		r.neverSent(c, ticket, parts, err)
		return nil
	}
	op.kind = r.sendKind(size)
	if c.plain != nil {
		// On sockets, one that is injected may never have left when Close is done.
		op.kind = fabric.OpTaggedSend
	}
	tagged.PutLength(op.buf, int64(n))
	return op
}

// neverSent ends a connection whose write has its id, but no operations that
// could end it: the end of the connection is what releases it.
func (r *Reactor) neverSent(c *Conn, ticket tagged.Ticket, parts int, err error) {
	for range parts {
		_ = c.writes.Complete(ticket, err)
	}
	r.failLater(c, err)
}

// sendKind is how a message in one of the reactor's buffers goes out. That an inject
// has failed nobody hears.
func (r *Reactor) sendKind(size int) fabric.OpKind {
	if size <= r.attributes.MaxInject && !r.attributes.StallsAfterFailure {
		return fabric.OpTaggedInject
	}
	return fabric.OpTaggedSend
}
