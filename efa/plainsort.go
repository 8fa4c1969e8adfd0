package efa

import (
	"fmt"
	"slices"

	"github.com/weft-go/weft/fabric"
)

// Connections that share an id on this side may receive with the same tag at the
// same time, and receives are from anybody: a payload comes to any of them, and
// who sent it says whose it is.

// sorted gives the receive of a payload that another connection with the same id
// sent to that connection, which then goes on with it. It says whether there is
// nothing more to be done.
func (r *Reactor) sorted(op *operation, done *fabric.Completion) bool {
	mine := op.conn
	p := mine.plain.id
	if !p.shared || done.Err != nil || done.Source == mine.peer.address {
		return false
	}
	theirs := p.from(done.Source)
	in, ok := mine.reads.Get(op.id)
	if theirs == nil || theirs.over || !ok {
		return false
	}
	live := mine.failure == nil && !mine.over
	their, announced := theirs.reads.Get(op.id)
	switch {
	case !announced:
		return r.keepEarly(op, in, theirs, done.Len)
	case their.whole:
		r.fail(theirs, ErrProtocol, fmt.Errorf("two payloads for message id %d", op.id))
		return false
	case their.op == nil:
		// Its own was held back, and is not needed any more.
		their.op, their.data = op, in.data
		their.counted, in.counted = in.counted, 0
		mine.plain.held -= their.counted
		theirs.plain.held += their.counted
		in.op, in.data = nil, nil
		op.moveTo(theirs)
		mine.receiving--
		theirs.receiving++
		if live {
			r.receivePayload(mine, op.id)
		}
	default:
		// They change their receives.
		other := their.op
		in.op, their.op = other, op
		in.data, their.data = their.data, in.data
		op.moveTo(theirs)
		other.moveTo(mine)
		if !live && other.posted {
			_ = r.device.Cancel(other.token)
		}
	}
	r.releaseConn(mine)
	return false
}

// keepEarly keeps a payload until its length is here, which was sent before it.
func (r *Reactor) keepEarly(op *operation, in *inbound, theirs *Conn, n int) bool {
	mine, id := op.conn, op.id
	known := slices.ContainsFunc(theirs.plain.early, func(e earlyPayload) bool { return e.id == id })
	if id-theirs.reads.Next() >= uint32(r.config.WindowMessages) || known {
		r.fail(theirs, ErrProtocol, fmt.Errorf("a payload for message id %d without a length", id))
		return false
	}
	theirs.plain.early = append(theirs.plain.early, earlyPayload{id, in.data[:n]})
	mine.plain.held -= in.counted
	theirs.plain.held += in.counted
	in.op, in.data, in.counted = nil, nil, 0
	r.freeOperation(op)
	mine.receiving--
	if mine.failure == nil && !mine.over {
		r.receivePayload(mine, id)
	}
	r.releaseConn(mine)
	return true
}

// takeEarly finishes a message whose payload came before its length.
func (r *Reactor) takeEarly(c *Conn, id uint32) bool {
	p := c.plain
	i := slices.IndexFunc(p.early, func(e earlyPayload) bool { return e.id == id })
	if i < 0 {
		return false
	}
	data := p.early[i].data
	p.early = slices.Delete(p.early, i, i+1)
	in, _ := c.reads.Get(id)
	in.data, in.counted = data, p.id.maxRead
	if int64(len(data)) != in.length {
		r.fail(c, ErrProtocol, fmt.Errorf("a payload of %d bytes where %d were announced", len(data), in.length))
		return true
	}
	in.whole = true
	_ = c.reads.Finish(id, nil)
	c.received++
	r.pump(c)
	return true
}

// moveTo makes an operation another connection's.
func (op *operation) moveTo(c *Conn) {
	if op.prev != nil {
		op.prev.next = op.next
	} else {
		op.conn.operations = op.next
	}
	if op.next != nil {
		op.next.prev = op.prev
	}
	op.conn, op.prev = c, nil
	if op.next = c.operations; op.next != nil {
		op.next.prev = op
	}
	c.operations = op
}
