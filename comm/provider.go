package comm

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// Matching by the provider (MatchByProvider): messages are tagged ones that say their
// context, source and tag (tagged.MatchedTag), and receives are handed down to the
// device with a tag and a mask, always from any address, and always into memory of the
// reactor's: so none is truncated, and the device never has the program's buffer.
//
// What the provider has of messages cannot be looked at there. When somebody must see
// them, the catch-all is posted, a receive for every message, behind those that were
// handed down: it brings up one message after the other, each the earliest that no
// receive in the provider takes.
//
//	           post                         the catch-all is down, and there is room
//	program ────────> waits here (matcher) ──────────────────────────────> handed down
//	                        ^                                                   │
//	                        │ what the catch-all brings               message or cancel
//
// Order holds because of three rules:
//
//   - Receives that were handed down were all posted before those that wait here: they
//     are handed down in order, and only while the catch-all is down. So what the
//     catch-all brings, which none of those in the provider took, is for those that wait
//     here.
//   - A receive looks first at what was brought up: it is older than whatever the
//     provider has of the same source.
//   - What the catch-all is asked back from either ends as cancelled, and then nothing
//     was lost, or with a message, which is treated like any other that it brings.
//
// Each message has its number among those of its sender to this rank. So this rank knows
// of messages that have come before one that it has seen, though they are with the
// provider still: a probe waits for those.
type provider struct {
	engine *engine
	limit  tally // of what each other rank may have sent, and not have credit for again
	most   int   // receives in the device
	count  int
	handed operationList // those receives, in the order of posting

	catchAll catchAll
	orphans  orphans

	// own are messages of this rank to itself, in order. If recalled is set, the first
	// of them waits for that one of handed, which takes it unless a message was there
	// first.
	own      operationList
	recalled *operation

	// Why the catch-all is to be up, beside probes and receives for which there is no
	// room: how many ranks wait for credit, or leave, and whether somebody has looked
	// for a message; how many ranks have just ended.
	bringing, draining int
	looked             bool
	ending             int
	leaving            *leaving

	// missing is how many messages are known to have come and were not seen; looks wait
	// until there is none.
	missing int64
	looks   []*look
}

func newProvider(e *engine) *provider {
	c := &e.config
	m := &provider{engine: e, most: min(c.HandedDown, e.reactor.MatchRoom())}
	m.limit = tally{mostOutstanding, uint64(max(c.MaxUnexpected/int64(c.Size-1), leastOutstanding*int64(c.Engine.EagerLimit+overhead)))}
	m.catchAll.provider, m.orphans.provider = m, m
	return m
}

// link has the messages of all peers known.
func (m *provider) link(p efa.Progress) {
	for _, to := range m.engine.peers {
		if to.conn != nil {
			to.link = p.MatchPeer(to.conn)
		}
	}
}

// steer does what has become possible: it hands down receives, and has the catch-all up
// or asks it back. It is called when anything has changed.
func (m *provider) steer(p efa.Progress) {
	e := m.engine
	if len(m.looks) > 0 {
		m.tellLooks(p)
	}
	if m.catchAll.up {
		if e.posted.head != nil && !m.staysUp() {
			m.catchAll.askBack(p)
		}
		return
	}
	for e.posted.head != nil && m.count < m.most {
		m.handDown(p, e.posted.head)
	}
	if m.wanted() {
		m.catchAll.post(p)
	}
}

// staysUp says whether the catch-all has to stay up although receives wait.
func (m *provider) staysUp() bool {
	// Half, so that it does not go up and down for each.
	return m.engine.probes.head != nil || m.bringing > 0 || m.ending > 0 || m.count > m.most/2
}

// wanted says whether the catch-all is to be up.
func (m *provider) wanted() bool {
	e := m.engine
	if e.closed {
		return m.leaving != nil
	}
	if m.insists() {
		return true
	}
	return !e.arrivals.full && (m.looked || m.bringing > 0 || e.posted.head != nil || e.probes.head != nil)
}

// insists says that messages are brought up even if there is no memory left: it is the
// last chance of some.
func (m *provider) insists() bool { return m.draining > 0 || m.ending > 0 }

// handDown gives a receive that waits here to the provider.
func (m *provider) handDown(p efa.Progress, op *operation) {
	m.engine.matcher.Cancel(op.ticket)
	op.leaveList()
	tag, ignore := op.pattern.MatchedReceive()
	slot, err := p.Match(tag, ignore, op)
	if err != nil {
		op.complete(p, err)
		return
	}
	op.slot = slot
	m.handed.push(op)
	m.count++
}

// Matched implements efa.MatchHandler: the provider lets go of a receive.
func (op *operation) Matched(p efa.Progress, a efa.Matched) {
	m := op.engine.provider
	ending := op.ending
	m.takeBack(op)
	recalled := m.recalled == op
	if recalled {
		m.recalled = nil
	}
	from, h, payload := m.open(p, a)
	switch {
	case from != nil:
		op.take(p, from, h, payload)
	case recalled && errors.Is(a.Err, fabric.ErrCanceled):
		sender := m.own.head
		sender.leaveList()
		sender.giveTo(p, op)
	case ending != nil:
		op.complete(p, ending)
	default:
		// What it got was none for it.
		op.receive(p)
	}
	m.matchOwn(p)
	m.steer(p)
}

// takeBack notes that a receive is not with the provider any more.
func (m *provider) takeBack(op *operation) {
	op.leaveList()
	m.count--
	op.slot, op.ending = efa.MatchReceive{}, nil
}

// abandon ends a receive although the provider has not let go of it. That has memory of
// the reactor's.
func (m *provider) abandon(p efa.Progress, op *operation, why error) {
	op.slot.Hand(&m.orphans)
	m.takeBack(op)
	if m.recalled == op {
		m.recalled = nil
	}
	op.complete(p, why)
}

// orphans are receives that nobody waits for any more.
type orphans struct{ provider *provider }

// Matched implements efa.MatchHandler.
func (o *orphans) Matched(p efa.Progress, a efa.Matched) {
	m := o.provider
	if from, h, payload := m.open(p, a); from != nil && !m.engine.closed {
		from.arrive(p, h, payload)
	}
	m.steer(p)
}

// open looks at a message that the provider has matched. Without a peer there is none.
func (m *provider) open(p efa.Progress, a efa.Matched) (from *peer, h header, payload []byte) {
	if a.Err != nil {
		if errors.Is(a.Err, fabric.ErrTruncated) {
			p.Stranger(a)
		}
		return nil, h, nil
	}
	envelope, ok := tagged.ParseMatchedTag(a.Tag)
	e := m.engine
	if !ok || int(envelope.Source) >= len(e.peers) || !a.From(e.peers[envelope.Source].link) {
		p.Stranger(a)
		return nil, h, nil
	}
	from = e.peers[envelope.Source]
	h, payload, err := parseNumbered(a.Message)
	switch {
	case err != nil:
	case !h.kind.matched() || h.tag != envelope.Tag:
		err = fmt.Errorf("%w: kind %d with tag %d as %d", ErrProtocol, h.kind, h.tag, envelope.Tag)
	case h.length > mostLength:
		err = errTooLong(h)
	default:
		err = m.sees(p, from, h.number, len(a.Message))
	}
	if err != nil {
		if from.failure == nil {
			p.Fail(from.conn, err)
		}
		return nil, h, nil
	}
	h.context, h.number = envelope.Context, 0
	return from, h, payload
}

// cancel ends a receive that the provider has, and a send that has not begun, if it can
// be.
func (m *provider) cancel(p efa.Progress, op *operation, why error) {
	switch {
	case op.list == nil:
	case op.list == &m.handed:
		if op.ending == nil {
			op.ending = why
		}
		if !p.Unmatch(op.slot) {
			m.abandon(p, op, why)
		}
	case op.list == &m.own:
		// The one that a receive was asked back for has begun.
		if m.recalled == nil || op != m.own.head {
			op.leaveList()
			op.complete(p, why)
		}
	case op.list == &op.peer.sending:
		op.leaveList()
		op.complete(p, why)
		op.peer.sendOn(p)
	}
}

// endAll ends everything that waits, when this rank closes.
func (m *provider) endAll(p efa.Progress, why error) {
	for m.handed.head != nil {
		op := m.handed.head
		p.Unmatch(op.slot)
		m.abandon(p, op, why)
	}
	m.own.endAll(p, why)
	for _, to := range m.engine.peers {
		to.sending.endAll(p, why)
	}
	m.tellLooks(p)
}

func (l *operationList) endAll(p efa.Progress, why error) {
	for l.head != nil {
		op := l.head
		op.leaveList()
		op.complete(p, why)
	}
}

// lose ends what waits for a rank that is lost.
func (m *provider) lose(p efa.Progress, lost *peer, why error) {
	m.forget(p, lost)
	waits := false
	for op := m.handed.head; op != nil; {
		next := op.next
		if rank, its := op.comm.waitsFor(op.pattern, lost.rank); its && op.ending == nil {
			waits = true
			m.cancel(p, op, &RankError{Rank: rank, Cause: why})
		}
		op = next
	}
	if waits {
		m.after(letGo, m.abandonLost)
	}
	// Later, because the caller has lists in its hands.
	p.Later(m.steer)
}

// letGo is how long the provider has to let go of what it was asked back. It may be in
// the middle of a message of a rank that is gone.
const letGo = time.Second

// abandonLost ends the receives of lost ranks that the provider does not let go of.
func (m *provider) abandonLost(p efa.Progress) {
	for op := m.handed.head; op != nil; {
		next := op.next
		var lost *RankError
		if errors.As(op.ending, &lost) {
			m.abandon(p, op, op.ending)
		}
		op = next
	}
	m.matchOwn(p)
	m.steer(p)
}

// after has f done in the progress role, unless this rank has closed by then.
func (m *provider) after(d time.Duration, f func(p efa.Progress)) {
	time.AfterFunc(d, func() {
		m.engine.do(func(p efa.Progress) {
			if !m.engine.closed {
				f(p)
			}
		})
	})
}
