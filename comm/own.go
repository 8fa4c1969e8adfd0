package comm

import (
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/tagged"
)

// Messages of a rank to itself are matched here, also where the provider matches. If
// the earliest receive for one is with the provider, it is asked back: either it comes,
// and gets the message, or it has got another, and the next one is looked for. Later
// messages wait meanwhile, so that none overtakes.

// sendOwn begins a send to this rank.
func (m *provider) sendOwn(p efa.Progress, op *operation) {
	m.own.push(op)
	m.matchOwn(p)
	m.steer(p)
}

// matchOwn goes on with the messages of this rank to itself.
func (m *provider) matchOwn(p efa.Progress) {
	for m.recalled == nil && m.own.head != nil {
		op := m.own.head
		h := op.ownHeader()
		r := m.earliest(h.envelope(m.engine.rank))
		switch {
		case r == nil:
			op.leaveList()
			op.arriveHere(p)
		case p.Unmatch(r.slot):
			m.recalled = r
		default:
			// The device does not answer any more.
			r.slot.Hand(&m.orphans)
			m.takeBack(r)
			op.leaveList()
			op.giveTo(p, r)
		}
	}
}

// earliest is the first receive in the provider that takes a message; nil if there is
// none. All others were posted later. There are few.
func (m *provider) earliest(e tagged.Envelope) *operation {
	for op := m.handed.head; op != nil; op = op.next {
		if op.ending == nil && op.pattern.Takes(e) {
			return op
		}
	}
	return nil
}
