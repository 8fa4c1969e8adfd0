package efa

import (
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// sendControl queues a control message.
func (r *Reactor) sendControl(c *Conn, m tagged.Control) {
	var message [tagged.ControlSize]byte
	tagged.PutControl(message[:], m)
	if c.putBeside(tagged.ControlTag(c.remoteID, 0), message[:], nil, nil) {
		return
	}
	op := r.newOperation(c, controlSend)
	op.tag = tagged.ControlTag(c.remoteID, 0)
	if err := r.fill(op, tagged.ControlSize); err != nil {
		r.freeOperation(op)
		r.failLater(c, err)
		return
	}
	copy(op.buf, message[:])
	op.kind = r.sendKind(tagged.ControlSize)
	r.arbiter.Push(&c.queue, op)
}

// controlArrived takes in a control message.
func (r *Reactor) controlArrived(message []byte, done *fabric.Completion) {
	c, _ := r.sender(done, tagged.KindControl)
	if c == nil {
		return
	}
	m, err := tagged.ParseControl(message)
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
		case tagged.ControlInvite:
			err = r.invitedTo(c, m)
		}
	}
	if err != nil {
		r.fail(c, ErrProtocol, err)
	}
}
