package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weft-go/weft/efa"
)

// The end where the provider matches. What the connections know of as delivered is not
// all: a message that the provider matches may be with the sender's until somebody sees
// it at the receiver. So a rank that closes tells each other how many of these it has
// sent (kindLeave), the other answers with the same, and both bring up and count all of
// them, whether they want them or not. Only then the connections are closed.

// leaving is the wait of a Close.
type leaving struct {
	provider *provider
	task     efa.Task
}

// leave waits until the others have everything, and this rank what they have sent. errs
// are set for the ranks that have not.
func (m *provider) leave(errs []error) {
	limit := m.engine.config.Engine.DrainTimeout
	if limit == 0 {
		limit = defaultClose
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	l := &leaving{provider: m}
	// Who is not done is found below.
	_ = m.engine.reactor.Run(ctx, &l.task, l)
	m.engine.do(func(p efa.Progress) {
		m.leaving = nil
		for rank, to := range m.engine.peers {
			why := to.failure
			switch {
			case to.hasLeft() && (to.sent == to.credited || errors.Is(why, ErrLeft)):
				continue
			case why == nil:
				why = os.ErrDeadlineExceeded
			}
			errs[rank] = fmt.Errorf("it has not confirmed %d messages: %w", to.sent.messages-to.credited.messages, why)
		}
	})
}

// hasLeft says that there is nothing to wait for of a rank: either side has what the
// other has sent, or its connection has ended.
func (to *peer) hasLeft() bool {
	return to.conn == nil || to.failure != nil || to.left && to.seen.messages >= to.bringTo && to.credited == to.sent
}

// defaultClose is Config.CloseTimeout where it is not given.
const defaultClose = 10 * time.Second

// Start implements efa.Work.
func (l *leaving) Start(p efa.Progress) {
	m := l.provider
	m.leaving = l
	for _, to := range m.engine.peers {
		m.sayLeave(p, to)
	}
	m.steer(p)
	m.checkLeaving(p)
}

// Abandon implements efa.Work.
func (l *leaving) Abandon(p efa.Progress, why error) {
	if m := l.provider; m.leaving == l {
		m.leaving = nil
		p.Finish(&l.task, why)
	}
}

// sayLeave tells a rank that it is sent no more.
func (m *provider) sayLeave(p efa.Progress, to *peer) {
	if to.conn == nil || to.failure != nil || to.toldLeave {
		return
	}
	to.toldLeave = true
	to.tell(p, header{kind: kindLeave, tag: to.sent.messages})
}

// checkLeaving ends the wait of a Close that has nothing to wait for.
func (m *provider) checkLeaving(p efa.Progress) {
	l := m.leaving
	if l == nil {
		return
	}
	for _, to := range m.engine.peers {
		if !to.hasLeft() {
			return
		}
	}
	m.leaving = nil
	p.Finish(&l.task, nil)
}

// rankEnded takes in that the connection to a rank has ended. What the provider has of
// it still is brought up before the rank counts as lost.
func (m *provider) rankEnded(p efa.Progress, from *peer, why error) {
	from.failure = why
	for from.sending.head != nil {
		op := from.sending.head
		op.leaveList()
		op.complete(p, op.comm.lostError(from, why))
	}
	m.engine.endSends(p, from, why)
	if from.left && from.seen.messages >= from.bringTo {
		m.engine.lose(p, from, why)
		return
	}
	m.ending++
	m.steer(p)
	m.lookAfter(from, from.seen.messages, mostLooks)
}

// A rank that has ended is looked after this often at most, and at these times, as long
// as messages come of it, or are known to have.
const (
	mostLooks = 100
	eachLook  = 10 * time.Millisecond
)

func (m *provider) lookAfter(from *peer, seen uint64, looks int) {
	m.after(eachLook, func(p efa.Progress) {
		comes := from.seen.messages > seen || from.highest > from.seen.messages
		if comes && looks > 0 {
			m.lookAfter(from, from.seen.messages, looks-1)
			return
		}
		m.ending--
		m.noLonger(p)
		m.engine.lose(p, from, from.failure)
	})
}

// forget ends what is counted of a rank that is lost.
func (m *provider) forget(p efa.Progress, lost *peer) {
	if lost.forgotten {
		return
	}
	lost.forgotten = true
	m.missing -= int64(lost.highest - lost.seen.messages)
	m.noteBringing(p, lost, false)
	p.Forget(lost.link)
	lost.link = nil
}
