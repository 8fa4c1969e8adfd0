package comm

import (
	"github.com/weft-go/weft/efa"
)

// send begins a send.
func (op *operation) send(p efa.Progress) {
	e := op.engine
	if op.peer.rank == e.rank {
		op.sendToSelf(p)
		return
	}
	if op.peer.failure != nil {
		op.complete(p, op.rankError())
		return
	}
	if e.provider != nil {
		op.peer.enqueue(p, op)
		return
	}
	var memory [openHeader]byte
	h := op.opens(p)
	h.context = op.context
	if h.kind != kindReady && h.kind != kindOpen {
		op.hand(p, h.put(&memory), op.buf)
		return
	}
	op.expect(p)
	if _, err := p.Send(op.peer.conn, h.put(&memory), nil, (*announcement)(op)); err != nil {
		op.failSend(p, err)
	}
}

// expect has whoever waits for a long message look on while it is moved.
func (op *operation) expect(p efa.Progress) {
	if op.blocking {
		p.Expect(&op.task, len(op.buf))
	}
}

// announcement is the message that says that there is one.
type announcement operation

// Sent implements efa.Sender. An answer, or the end of the connection, tells what became
// of the message.
func (*announcement) Sent(efa.Progress, error) {}

// opens is the header of the message that a send begins with: the whole message is
// behind it, or it says that there is one.
func (op *operation) opens(p efa.Progress) header {
	e, room := op.engine, op.peer.eager-len(op.buf)
	h := header{tag: op.tag}
	switch {
	case op.synchronous && room >= idHeader:
		h.kind, h.id = kindSync, e.sends.take(op)
	case !op.synchronous && room >= shortHeader:
		h.kind = kindEager
	default:
		h.kind, h.id, h.length = kindReady, e.sends.take(op), uint64(len(op.buf))
		op.expose(p, &h)
	}
	return h
}

// hand gives the device a message of a send, and its buffer until Sent.
func (op *operation) hand(p efa.Progress, head, payload []byte) {
	free, err := p.Send(op.peer.conn, head, payload, op)
	switch {
	case err != nil:
		op.failSend(p, err)
	case free:
		op.Sent(p, nil)
	default:
		op.inDevice = true
	}
}

// Sent implements efa.Sender: the buffer is the caller's again.
func (op *operation) Sent(p efa.Progress, err error) {
	if op.reading > 0 {
		op.pieceRead(p, err)
		return
	}
	op.free, op.inDevice = true, false
	if err == nil && op.synchronous && !op.matched {
		if op.failed == nil {
			return
		}
		err = op.failed
	}
	if err != nil {
		op.failSend(p, err)
		return
	}
	op.complete(p, nil)
}

// failSend ends a send, when the device does not have its buffer any more.
func (op *operation) failSend(p efa.Progress, err error) {
	op.engine.sends.give(op)
	op.endExposure()
	if op.inDevice {
		op.failed = err
		return
	}
	op.complete(p, op.comm.lostError(op.peer, err))
}

// sendToSelf is a send to this rank.
func (op *operation) sendToSelf(p efa.Progress) {
	e := op.engine
	if e.provider != nil {
		e.provider.sendOwn(p, op)
		return
	}
	op.arriveHere(p)
}

// arriveHere gives a message of this rank to itself to a receive that waits here for
// it, or keeps it.
func (op *operation) arriveHere(p efa.Progress) {
	e := op.engine
	h := op.ownHeader()
	a := e.arrivals.take()
	r, matched := e.matcher.Arrive(h.envelope(e.rank), a)
	eager := !op.synchronous && !e.arrivals.full && len(op.buf) <= e.config.Engine.EagerLimit
	switch {
	case matched:
		e.arrivals.give(a)
		r.leaveList()
		op.giveTo(p, r)
		return
	case eager:
		a.arrived(op.peer, h, op.buf)
		op.complete(p, nil)
	default:
		// It stays where it is until a receive comes.
		a.arrived(op.peer, h, nil)
		a.length, a.local = len(op.buf), op
		e.sends.take(op)
	}
	e.keep(p, a)
}

func (op *operation) ownHeader() header {
	return header{kind: kindEager, context: op.context, tag: op.tag}
}

// giveTo ends a send to this rank with the receive that it was matched with.
func (op *operation) giveTo(p efa.Progress, r *operation) {
	r.accept(p, op.peer, op.tag, op.buf)
	op.complete(p, nil)
}

// answered takes in that a receive was found for a synchronous send, or has read what
// it wants.
func (op *operation) answered(p efa.Progress) error {
	if op.exposure == nil && !op.inDevice && !op.free {
		// It was told that there is a message, and has none of it.
		return errUnknown
	}
	op.engine.sends.give(op)
	if op.exposure != nil {
		op.endExposure()
		op.free = true
	}
	if op.matched = true; op.free {
		op.complete(p, nil)
	}
	return nil
}

// cleared takes in that the receiver of a long message has memory for so much of it.
func (op *operation) cleared(p efa.Progress, receiver, length uint64) error {
	if length > uint64(len(op.buf)) || op.inDevice || op.free {
		return errTooMuch
	}
	op.engine.sends.give(op)
	op.endExposure()
	op.matched = true
	payload := op.buf[:length]
	var memory [openHeader]byte
	var head []byte
	if len(payload) <= op.peer.eager-shortHeader {
		h := header{kind: kindData, tag: receiver}
		head = h.put(&memory)
	}
	op.hand(p, head, payload)
	return nil
}
