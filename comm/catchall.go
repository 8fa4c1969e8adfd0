package comm

import (
	"context"
	"slices"
	"time"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/tagged"
)

// catchAll is the receive that brings messages up from the provider: see provider.
type catchAll struct {
	provider *provider
	slot     efa.MatchReceive
	up       bool
	asked    bool // back
}

func (c *catchAll) post(p efa.Progress) {
	slot, err := p.Match(tagged.AnyMatched, tagged.AnyMatchedIgnore, c)
	if err != nil {
		// The device is of no use any more, or there is no memory: the next event tries
		// again.
		return
	}
	c.slot, c.up, c.asked = slot, true, false
}

func (c *catchAll) askBack(p efa.Progress) {
	c.provider.looked = false
	if !c.asked {
		c.asked = true
		p.Unmatch(c.slot)
	}
}

// Matched implements efa.MatchHandler.
func (c *catchAll) Matched(p efa.Progress, a efa.Matched) {
	c.up, c.slot = false, efa.MatchReceive{}
	m := c.provider
	if from, h, payload := m.open(p, a); from != nil && !m.engine.closed {
		from.arrive(p, h, payload)
	}
	m.steer(p)
}

// look is a wait until this rank has seen what is known to have come.
type look struct {
	provider *provider
	task     efa.Task
}

// longestLook bounds that: a rank may have stopped in the middle of a message.
const longestLook = time.Second

// bringUp has messages that have come seen: those that are known to have, and what the
// provider gives at once beside.
func (e *engine) bringUp() {
	m := e.provider
	if m == nil {
		e.reactor.Poll()
		return
	}
	missing := false
	for range 2 {
		e.do(func(p efa.Progress) {
			m.looked = true
			m.steer(p)
			missing = !m.complete()
		})
		e.reactor.Poll()
	}
	if !missing {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestLook)
	defer cancel()
	l := &look{provider: m}
	// An error says that the time is over.
	_ = e.reactor.Run(ctx, &l.task, l)
}

// complete says that no message is known of that could be brought up.
func (m *provider) complete() bool {
	return m.missing == 0 || m.engine.arrivals.full || m.engine.closed
}

// Start implements efa.Work.
func (l *look) Start(p efa.Progress) {
	m := l.provider
	m.looked = true
	m.looks = append(m.looks, l)
	m.steer(p)
}

// Abandon implements efa.Work.
func (l *look) Abandon(p efa.Progress, why error) {
	m := l.provider
	if i := slices.Index(m.looks, l); i >= 0 {
		m.looks = slices.Delete(m.looks, i, i+1)
		p.Finish(&l.task, why)
	}
}

func (m *provider) tellLooks(p efa.Progress) {
	if !m.complete() {
		return
	}
	for _, l := range m.looks {
		p.Finish(&l.task, nil)
	}
	m.looks = m.looks[:0]
}
