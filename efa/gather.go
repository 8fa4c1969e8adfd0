package efa

import "github.com/weft-go/weft/tagged"

// Gathering: a short message that is written while an earlier one of its
// connection waits to be posted joins that one (tagged/group.go). Nothing ever
// waits for the sake of it.

// isNext says that a write with this ticket can join the operation: its place in
// line is the one behind the last that joined. One that was put back after a flush
// came behind it takes no more.
func (op *operation) isNext(ticket tagged.Ticket) bool {
	return op != nil && ticket == op.ticket+tagged.Ticket(op.group)
}

// gather adds a message, in two parts, to the operation of an earlier one, and says whether it
// could be.
func (r *Reactor) gather(op *operation, head, message []byte) bool {
	c := op.conn
	n := len(head) + len(message)
	size := len(op.buf) + tagged.GroupEntry + n
	if op.group == 1 {
		size += tagged.GroupEntry
	}
	if size > tagged.LengthSize+c.eagerLimit || n > tagged.MaxGrouped {
		c.gathering = nil
		return false
	}
	if size > len(op.buffer.data) {
		bigger, err := r.buffers.take(size)
		if err != nil {
			return false
		}
		copy(bigger.data, op.buf)
		op.buf = bigger.data[:len(op.buf)]
		r.buffers.give(op.buffer)
		op.buffer, op.descriptor = bigger, bigger.descriptor
	}
	end := len(op.buf)
	if op.group == 1 {
		end = tagged.BeginGroup(op.buffer.data, end-tagged.LengthSize)
	}
	end = tagged.AppendGroup(op.buffer.data, end, head, message)
	op.buf, op.kind = op.buffer.data[:end], r.sendKind(end)
	op.group++
	c.stats.joined(op.group)
	return true
}

// groupArrived takes in a group that came in the place of a length message.
func (r *Reactor) groupArrived(c *Conn, id uint32, message []byte) error {
	g, err := tagged.ParseGroup(message)
	c.stats.GroupsReceived++
	for err == nil {
		var payload []byte
		var ok bool
		if payload, ok, err = g.Next(); !ok {
			break
		}
		if err = r.announce(c, id, int64(len(payload))); err == nil {
			r.arrivedWhole(c, id, payload)
		}
		id++
	}
	return err
}
