package comm

import (
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/tagged"
)

// Where the provider matches, what this rank has not seen is in the provider's memory,
// here or at the sender. That is bounded by credit: a sender may have so many messages,
// and bytes, under way to a rank that this has not seen, that is, that neither a receive
// nor the catch-all got. The receiver tells what it has seen in batches (kindCredit). A
// sender without credit says so (kindBring), and the receiver brings up what has come,
// as long as it has memory (Config.MaxUnexpected): so credit never runs out only because
// nobody receives what came first.

// tally counts messages, and what they cost in bytes.
type tally struct{ messages, bytes uint64 }

func (t *tally) add(size int) {
	t.messages++
	t.bytes += uint64(size) + overhead
}

// within says that a count which a peer gives is one that can be.
func (t tally) within(least, most tally) bool {
	return t.messages >= least.messages && t.bytes >= least.bytes && t.messages <= most.messages && t.bytes <= most.bytes
}

const (
	// mostOutstanding is how many messages a rank may have under way to another, and
	// leastOutstanding how many of the longest are allowed however little memory there
	// is.
	mostOutstanding  = 256
	leastOutstanding = 4
)

// provided is what a peer has beside where the provider matches. But for limit it
// belongs to the progress role.
type provided struct {
	limit tally          // of what may be under way to it
	link  *efa.MatchPeer // by which its messages are known

	sent, credited tally
	sending        operationList // for credit
	asked          uint64        // how many were sent when credit was last asked for
	left           bool          // it takes no more, and sends no more than bringTo
	toldLeave      bool          // that this rank sends it no more

	seen, told         tally
	highest            uint64 // the number after the highest that was seen
	bringTo            uint64 // how many are to be seen soon
	bringing, draining bool   // is counted in provider
	forgotten          bool
}

// enqueue sends a message, behind those that wait for credit.
func (to *peer) enqueue(p efa.Progress, op *operation) {
	switch {
	case to.left:
		op.complete(p, op.comm.lostError(to, ErrLeft))
	case to.sending.head != nil || !to.hasRoom(op):
		to.sending.push(op)
		to.ask(p)
	default:
		op.launch(p)
	}
}

// hasRoom says whether there is credit for the first message of a send.
func (to *peer) hasRoom(op *operation) bool {
	most := uint64(min(to.eager, openHeader+len(op.buf)) + overhead)
	return to.sent.messages-to.credited.messages < to.limit.messages &&
		to.sent.bytes-to.credited.bytes+most <= to.limit.bytes
}

// sendOn sends what waited for credit.
func (to *peer) sendOn(p efa.Progress) {
	for op := to.sending.head; op != nil && to.hasRoom(op); op = to.sending.head {
		op.leaveList()
		op.launch(p)
	}
	if to.sending.head != nil {
		to.ask(p)
	}
}

// ask tells a rank that this one waits for credit.
func (to *peer) ask(p efa.Progress) {
	if to.asked < to.sent.messages {
		to.asked = to.sent.messages
		to.tell(p, header{kind: kindBring, tag: to.sent.messages})
	}
}

// tell sends a word about credit.
func (to *peer) tell(p efa.Progress, h header) {
	var memory [openHeader]byte
	// If it cannot be sent, the connection has ended, and both hear of that.
	_, _ = p.Send(to.conn, h.put(&memory), nil, nil)
}

// launch sends the first message of a send.
func (op *operation) launch(p efa.Progress) {
	e, to := op.engine, op.peer
	h := op.opens(p)
	h.number = to.sent.messages
	var payload []byte
	whole := h.kind == kindEager || h.kind == kindSync
	if whole {
		payload = op.buf
	}
	var memory [openHeader]byte
	head := h.put(&memory)
	tag := tagged.MatchedTag(tagged.Envelope{Context: op.context, Source: uint32(e.rank), Tag: op.tag})
	if err := p.SendMatched(to.conn, tag, head, payload); err != nil {
		op.failSend(p, err)
		return
	}
	to.sent.add(len(head) + len(payload))
	if whole {
		op.Sent(p, nil)
	}
}

// sees counts a message of a peer that has come up, and gives credit for it.
func (m *provider) sees(p efa.Progress, from *peer, number uint64, size int) error {
	if from.forgotten {
		return nil
	}
	if number >= from.told.messages+m.limit.messages {
		return errTooMuch
	}
	missing := from.highest - from.seen.messages
	from.highest = max(from.highest, number+1)
	if from.seen.messages == from.highest {
		return errTooMuch
	}
	from.seen.add(size)
	m.missing += int64(from.highest-from.seen.messages) - int64(missing)
	m.settle(p, from)
	return nil
}

// settle gives credit where it is time to, and notes what a rank waits for.
func (m *provider) settle(p efa.Progress, from *peer) {
	seen, told := from.seen, from.told
	due := seen.messages >= from.bringTo && from.bringTo > told.messages ||
		seen.messages-told.messages >= m.limit.messages/2 || seen.bytes-told.bytes >= m.limit.bytes/2
	// Nobody is to fill up what is given beyond the limit.
	if due && (from.left || !m.insists() || !m.engine.arrivals.full) {
		from.told = seen
		from.tell(p, header{kind: kindCredit, tag: seen.messages, id: seen.bytes})
	}
	m.noteBringing(p, from, !from.forgotten && seen.messages < from.bringTo)
	m.checkLeaving(p)
}

func (m *provider) noteBringing(p efa.Progress, from *peer, bringing bool) {
	note := func(noted *bool, now bool, count *int) {
		switch {
		case now && !*noted:
			*count++
		case !now && *noted:
			*count--
		}
		*noted = now
	}
	insisted := m.insists()
	note(&from.bringing, bringing, &m.bringing)
	note(&from.draining, bringing && from.left, &m.draining)
	if insisted {
		m.noLonger(p)
	}
}

// noLonger gives the credit that was kept back while messages were insisted on.
func (m *provider) noLonger(p efa.Progress) {
	if !m.insists() {
		p.Later(func(p efa.Progress) {
			for _, from := range m.engine.peers {
				if from.conn != nil && from.failure == nil {
					m.settle(p, from)
				}
			}
		})
	}
}

// told takes in what a peer says about credit.
func (m *provider) told(p efa.Progress, from *peer, h header) error {
	if h.kind == kindCredit {
		seen := tally{h.tag, h.id}
		if !seen.within(from.credited, from.sent) {
			return errTooMuch
		}
		from.credited = seen
		from.sendOn(p)
		m.checkLeaving(p)
		return nil
	}
	if from.left || h.tag < from.bringTo || h.tag > from.told.messages+m.limit.messages {
		return errTooMuch
	}
	// Messages may be faster than a word about those before them, but there are none
	// behind the last.
	if h.kind == kindLeave && h.tag < from.highest {
		return errTooMuch
	}
	from.bringTo = h.tag
	if h.kind == kindLeave {
		from.left = true
		for from.sending.head != nil {
			op := from.sending.head
			op.leaveList()
			op.complete(p, op.comm.lostError(from, ErrLeft))
		}
		m.sayLeave(p, from)
	}
	m.settle(p, from)
	m.steer(p)
	return nil
}
