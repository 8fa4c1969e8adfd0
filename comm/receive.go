package comm

import (
	"github.com/weft-go/weft/efa"
)

// receive begins a receive.
func (op *operation) receive(p efa.Progress) {
	e := op.engine
	op.limit = len(op.buf)
	if op.claimed != nil {
		op.deliver(p, op.claimed)
		return
	}
	ticket, message, matched := e.matcher.Post(op.pattern, op)
	if matched {
		op.deliver(p, message.Value)
		return
	}
	if err := op.comm.lostOf(op.pattern); err != nil {
		e.matcher.Cancel(ticket)
		op.complete(p, err)
		return
	}
	op.ticket = ticket
	e.posted.push(op)
	if e.provider != nil {
		e.provider.steer(p)
	}
}

// take begins to receive the message that a receive was matched with.
func (op *operation) take(p efa.Progress, from *peer, h header, payload []byte) {
	switch h.kind {
	case kindReady, kindOpen:
		op.fetch(p, from, h)
	case kindSync:
		from.answer(p, h.id)
		fallthrough
	default:
		op.accept(p, from, h.tag, payload)
	}
}

// deliver gives a message that has waited to its receive.
func (op *operation) deliver(p efa.Progress, a *arrival) {
	e, from, h := op.engine, a.peer, a.header
	switch {
	case a.local != nil:
		sender := a.local
		e.sends.give(sender)
		e.taken(p, a)
		op.accept(p, from, h.tag, sender.buf)
		sender.complete(p, nil)
	case h.kind == kindReady || h.kind == kindOpen:
		e.taken(p, a)
		op.fetch(p, from, h)
	default:
		if h.kind == kindSync {
			from.answer(p, h.id)
		}
		op.accept(p, from, h.tag, a.data)
		e.taken(p, a)
	}
}

// accept ends a receive with a message that is here.
func (op *operation) accept(p efa.Progress, from *peer, tag uint64, message []byte) {
	op.matchedWith(from, tag, len(message))
	copy(op.buf, message)
	op.finishReceive(p)
}

// matchedWith notes whose message it is.
func (op *operation) matchedWith(from *peer, tag uint64, length int) {
	op.peer = from
	op.status = Status{Source: op.comm.rankOf(from.rank), Tag: int(tag), Length: length}
}

// finishReceive ends a receive that has what fits of its message.
func (op *operation) finishReceive(p efa.Progress) {
	var err error
	if op.status.Length > op.limit {
		err = &TruncationError{Size: op.status.Length, Limit: op.limit}
	}
	op.complete(p, err)
}

// fetch asks for a message that waits at its sender.
func (op *operation) fetch(p efa.Progress, from *peer, h header) {
	op.matchedWith(from, h.tag, int(h.length))
	if from.failure != nil {
		op.complete(p, op.rankError())
		return
	}
	op.buf = op.buf[:min(len(op.buf), int(h.length))]
	if h.kind == kindOpen && op.engine.readsRemotely() && !from.unreadable {
		op.read(p, h)
		return
	}
	op.clear(p, h)
}

// clear tells the sender that there is memory for its message.
func (op *operation) clear(p efa.Progress, h header) {
	from := op.peer
	id := op.engine.receives.take(op)
	clearance := header{kind: kindClear, tag: h.id, id: id, length: uint64(len(op.buf))}
	var memory [openHeader]byte
	if _, err := p.Send(from.conn, clearance.put(&memory), nil, nil); err != nil {
		op.failReceive(p, err)
		return
	}
	if len(op.buf) > from.eager-shortHeader {
		from.clear.push(op)
	}
}

// dataArrived takes in the short data of a rendezvous.
func (op *operation) dataArrived(p efa.Progress, data []byte) error {
	if len(data) != len(op.buf) || len(op.buf) > op.peer.eager-shortHeader {
		return errTooMuch
	}
	op.engine.receives.give(op)
	copy(op.buf, data)
	op.finishReceive(p)
	return nil
}

// failReceive ends a receive that waits for data of its message.
func (op *operation) failReceive(p efa.Progress, err error) {
	op.leaveList()
	op.engine.receives.give(op)
	op.complete(p, op.comm.lostError(op.peer, err))
}
