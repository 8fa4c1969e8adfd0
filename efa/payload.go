package efa

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

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
	if c.handler != nil && !c.locallyClosed {
		r.handOut(c)
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
		c.attended, c.overdue = true, false
	case front && len(c.readers) > 0 && c.readers[0].stream:
		// He takes a part of it, or a copy.
		in.data = r.shelf.take(int(in.length))
	case r.putsOff(c, in):
		return
	case in.length <= r.config.WindowBytes || c.locallyClosed:
		in.data = r.shelf.take(int(in.length))
	default:
		return
	}
	r.beginPayload(c, id, in)
}

// beginPayload posts the first receive of a payload, and tells a sender that waits for
// that.
func (r *Reactor) beginPayload(c *Conn, id uint32, in *inbound) {
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
	op.lane = c.lane(in.length, id, in.asked/c.piece)
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
		*r.receivesAhead(c, op.lane)--
	} else {
		in.op = op
		c.receiving++
	}
	r.pushReceive(op)
}

// receiveOn posts the receives of the next pieces of a message of which one has come.
// Those ahead take only a part of the room: another message's may be before them on
// the way.
func (r *Reactor) receiveOn(c *Conn, id uint32, in *inbound) {
	for int64(in.asked) < in.length {
		lane := c.lane(in.length, id, in.asked/c.piece)
		if in.receiving() && (in.ahead >= c.piecesAtOnce() || *r.receivesAhead(c, lane) <= 0) {
			return
		}
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
	c, id, offset, ahead, lane, from := op.conn, op.id, op.offset, op.ahead, op.lane, op.peer().address
	r.freeOperation(op)
	defer r.releaseConn(c)
	if ahead {
		*r.receivesAhead(c, lane)++
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
	stranger := done.Err == nil && done.Source != from && c.failure == nil && !c.over
	if stranger {
		r.stats.Dropped++
	}
	if stranger && !in.receiving() && offset == in.got {
		// Somebody else took the peer's name; the payload is still to come.
		r.postPayload(c, id, in)
		return
	}
	want := min(c.piece, int(in.length)-offset)
	if done.Err == nil && done.Len == want && !stranger && c.failure == nil && !c.over {
		c.stats.pieceReceived(want, in.length)
		r.countCarried(c, lane, want)
		c.payloadsCome++
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
		switch {
		case in.owner != nil:
			// It is a reader's, and must not come to the shelf.
			in.data = nil
		case in.handled:
			r.handBack(c, in, c.failure)
			r.pump(c)
		}
		return
	}
	_ = c.reads.Finish(id, nil)
	c.received++
	c.stats.ReceivedBytes += uint64(in.length)
	in.whole = true
	in.data = in.data[:in.length] // where an id is shared, it is longer
	if in.handled {
		r.handBack(c, in, nil)
	}
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
