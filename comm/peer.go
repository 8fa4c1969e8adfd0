package comm

import (
	"errors"
	"fmt"
	"io"

	"github.com/weft-go/weft/efa"
)

// peer is another rank, or this one. It takes the messages of its connection.
type peer struct {
	engine *engine
	rank   int // of the world
	conn   *efa.Conn
	eager  int // the longest message with a header

	// All below belongs to the progress role.
	failure error
	// held: a message waits in the connection, because there is no memory for it.
	held bool
	// clear are the receives that have told the peer to send, in that order. Their
	// messages come in the same.
	clear operationList
	// unreadable: a read of its memory has failed, and none is tried any more.
	unreadable bool

	provided
}

var (
	errTooMuch = fmt.Errorf("%w: more is asked for than there is", ErrProtocol)
	errUnknown = fmt.Errorf("%w: an answer to what was never sent", ErrProtocol)
	errNotHere = fmt.Errorf("%w: a message of the other mode of matching", ErrProtocol)
)

// Message implements efa.Handler.
func (from *peer) Message(p efa.Progress, m []byte) bool {
	e := from.engine
	h, payload, err := parseHeader(m)
	if err != nil {
		p.Fail(from.conn, err)
		return true
	}
	switch h.kind {
	case kindEager, kindSync, kindReady, kindOpen:
		if e.provider == nil {
			return from.message(p, h, payload)
		}
		err = errNotHere
	case kindCredit, kindBring, kindLeave:
		if err = errNotHere; e.provider != nil {
			err = e.provider.told(p, from, h)
		}
	case kindNotice:
		return from.noticed(p, h)
	case kindGone:
		from.gone(p, h.context)
	case kindMatched:
		err = errUnknown
		if op := e.sends.find(h.tag, from); op != nil {
			err = op.answered(p)
		}
	case kindClear:
		err = errUnknown
		if op := e.sends.find(h.tag, from); op != nil {
			err = op.cleared(p, h.id, h.length)
		}
	case kindData:
		err = errUnknown
		if op := e.receives.find(h.tag, from); op != nil && !op.inDevice {
			err = op.dataArrived(p, payload)
		}
	}
	if err != nil {
		p.Fail(from.conn, err)
	}
	return true
}

// message takes in a message that is to be matched.
func (from *peer) message(p efa.Progress, h header, payload []byte) bool {
	e := from.engine
	if e.closed {
		return true
	}
	if e.arrivals.full {
		from.held = true
		return false
	}
	if h.length > mostLength {
		p.Fail(from.conn, errTooLong(h))
		return true
	}
	from.arrive(p, h, payload)
	return true
}

func errTooLong(h header) error {
	return fmt.Errorf("%w: a message of %d bytes", ErrProtocol, h.length)
}

// arrive gives a message to a receive that waits here for it, or keeps it.
func (from *peer) arrive(p efa.Progress, h header, payload []byte) {
	e := from.engine
	a := e.arrivals.take()
	op, matched := e.matcher.Arrive(h.envelope(from.rank), a)
	if !matched {
		a.arrived(from, h, payload)
		if h.kind == kindReady || h.kind == kindOpen {
			a.length = int(h.length)
		}
		e.keep(p, a)
		if !e.isOpen(h.context) {
			e.drop(p, h.context)
		}
		e.arrivals.full = e.arrivals.used >= e.arrivals.limit
		return
	}
	e.arrivals.give(a)
	op.leaveList()
	op.take(p, from, h, payload)
}

// mostLength is the longest message that there can be.
const mostLength = 1 << 48

// answer tells that a receive was found for a synchronous send.
func (from *peer) answer(p efa.Progress, id uint64) {
	var memory [openHeader]byte
	h := header{kind: kindMatched, tag: id}
	// If it cannot be sent, the connection has ended, and the sender hears of that.
	_, _ = p.Send(from.conn, h.put(&memory), nil, nil)
}

// Payload implements efa.Handler: the data of a rendezvous.
func (from *peer) Payload(p efa.Progress, length int) []byte {
	op := from.clear.head
	if op == nil || length != len(op.buf) {
		p.Fail(from.conn, fmt.Errorf("%w: %d bytes that nobody has asked for", ErrProtocol, length))
		return nil
	}
	op.inDevice = true
	return op.buf
}

// Received implements efa.Handler.
func (from *peer) Received(p efa.Progress, _ []byte, err error) {
	op := from.clear.head
	if op == nil || !op.inDevice {
		return
	}
	if err != nil {
		op.failReceive(p, err)
		return
	}
	op.leaveList()
	from.engine.receives.give(op)
	op.finishReceive(p)
}

// Ended implements efa.Handler.
func (from *peer) Ended(p efa.Progress, why error) {
	e := from.engine
	if e.closed {
		if from.failure = why; e.provider != nil {
			e.provider.checkLeaving(p)
		}
		return
	}
	var failed *efa.ConnError
	switch {
	case errors.Is(why, io.EOF):
		why = ErrLeft
	case errors.As(why, &failed):
		e.config.Logger.Warn("weft: a rank is lost", "rank", from.rank, "error", why)
	}
	if e.provider != nil {
		e.provider.rankEnded(p, from, why)
		return
	}
	e.lose(p, from, why)
}
