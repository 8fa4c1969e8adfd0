package collective

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
)

// A call that has failed ends when nothing of the caller's is in use any more: its own
// writes have ended, and the peers that were told of memory of the caller's write no more
// to it. A rank that has failed begins no writes; when those that it has begun have ended,
// it says so to whoever has told it of memory (noticeStopped), and how many words it has
// written there in all. So once as many have come, all is there. Of a rank that is lost
// nobody knows: memory that it was told of is in use until the world is closed.

// letGo is how long a call that has failed waits for that.
const letGo = 2 * time.Second

// fail ends a call, as soon as nothing of the caller's is in use.
func (c *call) fail(p progress, why error) {
	if c.planned == refusal {
		// Nobody waits for it.
		return
	}
	c.failure = why
	if c.window != nil {
		// A peer may still write there.
		c.group.parked = append(c.group.parked, c.window)
		c.window = nil
	}
	if c.toldNear {
		// Who has failed looks for nothing, and has to say that it writes no more.
		for _, source := range c.planned.sources {
			if c.group.members[source].lost == nil {
				_ = c.group.comm.Notify(p, source, comm.Notice{Tag: noticeTag(noticeReady, c.number)})
			}
		}
	}
	if !c.settle(p) {
		c.group.failed = append(c.group.failed, c)
	}
}

// settle ends a call that has failed, or its use of the caller's memory if it has ended
// before, and says whether it has done so. Otherwise it is too early.
func (c *call) settle(p progress) bool {
	written, unknown := c.isWritten()
	switch {
	case c.flying > 0 || written:
		if c.flying == 0 && unknown {
			c.giveUp(p)
		}
		return false
	case c.released != nil:
		close(c.released)
		// It has ended; what is closed here would have been so at the end of the world.
		_ = c.giveBack()
	default:
		c.end(p, c.failure)
	}
	return true
}

// isWritten says whether peers may still write to the caller's memory, and whether there
// is one of which no word will come.
func (c *call) isWritten() (may, unknown bool) {
	if !c.told {
		return false, false
	}
	for _, source := range c.planned.sources {
		// Whoever was lost by then was not told.
		if m := &c.group.members[source]; m.shown > c.number && (!m.stopped || m.heard < m.stoppedAt) {
			may, unknown = true, unknown || m.lost != nil
		}
	}
	return may, unknown
}

// giveUp ends the wait of a call: shm completes writes in the order of their beginning,
// and one of them may be to a process that is gone.
func (c *call) giveUp(p progress) {
	if c.released == nil {
		c.released = make(chan struct{})
		c.inFlight = errors.Join(c.inFlight, &efa.InFlightError{Err: told(c.failure), Released: c.released})
		c.end(p, c.failure)
	}
}

// giveUp ends all waits that go on.
func (g *group) giveUp(p progress) {
	for _, c := range g.failed {
		c.giveUp(p)
	}
}

// settle is that of all calls that have failed.
func (g *group) settle(p progress) {
	waiting := g.failed[:0]
	for _, c := range g.failed {
		if !c.settle(p) {
			waiting = append(waiting, c)
		}
	}
	clear(g.failed[len(waiting):])
	g.failed = waiting
	if len(waiting) == 0 && g.respite != nil {
		g.respite.end()
		g.respite = nil
	}
}

// respite is a time that a group gives others. It belongs to the progress role, but
// for the timer, which Go keeps for a while when it was stopped: the group must not stay so long.
type respite struct {
	timer *time.Timer
	group *group // nil when it has ended
}

// newRespite has a group call over, which must not hold on to it, after letGo.
func newRespite(g *group, over func(g *group, p progress)) *respite {
	r, reactor := &respite{group: g}, g.comm.Reactor()
	r.timer = time.AfterFunc(letGo, func() {
		reactor.Do(func(p progress) {
			if r.group != nil {
				over(r.group, p)
			}
		})
	})
	return r
}

func (r *respite) end() {
	r.timer.Stop()
	r.group = nil
}

// tellStopped tells who wants to know that this rank writes no more, if that is so.
func (g *group) tellStopped(p progress) {
	if g.failure == nil || g.flying > 0 {
		return
	}
	for rank := range g.members {
		m := &g.members[rank]
		// It may still be in a call that is done here.
		wants := g.closed || m.announced > m.released
		if rank == g.rank || !wants || m.dismissed || m.unsure || m.lost != nil {
			continue
		}
		m.dismissed = true
		_ = g.comm.Notify(p, rank, comm.Notice{Tag: noticeTag(noticeStopped, 0), ID: m.words})
	}
}

// noticedLate takes in a notice after a failure.
func (g *group) noticedLate(p progress, from *member, n comm.Notice) {
	switch n.Tag & 0xff {
	case noticeReady:
		from.announced = max(from.announced, n.Tag>>8+1)
		g.tellStopped(p)
	case noticeStopped:
		from.stopped, from.stoppedAt = true, n.ID
	case noticeClosed:
		from.stopped, from.stoppedAt = true, n.Length
	}
	g.settle(p)
	g.retire(p)
}

// release ends the waits when the device is closed: nobody writes here any more, but, on shm, for a
// process that still lives and has not said so: one that is stopped, say, and goes on later. What it was told
// of is never any other memory of the program's.
func (g *group) release(p progress) {
	g.lookAway(p)
	for _, c := range g.failed {
		if may, unknown := c.isWritten(); may && (unknown || g.sameHost) && c.exposed != nil {
			keep(c.spaces[schedule.Output])
		}
		c.told = false
	}
	g.settle(p)
	if g.mayBeWritten() {
		g.parked = slices.DeleteFunc(g.parked, func(b *block) bool {
			// Others write to one that is shared where they have mapped it themselves.
			return b.shared == nil && b.exposure.Close() == nil
		})
	}
}

// mayBeWritten says whether there is a process that lives, and has not said that it writes no more.
func (g *group) mayBeWritten() bool {
	for rank := range g.members {
		m := &g.members[rank]
		if m.near != nil && m.near.process != nil && (!m.stopped || m.heard < m.stoppedAt) && m.near.process.lives() == nil {
			return true
		}
	}
	return false
}

// kept is memory of Go's that is not given back for as long as the process lives.
var kept struct {
	sync.Mutex
	memory [][]byte
}

func keep(memory []byte) {
	kept.Lock()
	defer kept.Unlock()
	kept.memory = append(kept.memory, memory)
}

// retire ends what a communicator that is closed has, once all other ranks have said that
// they write no more, and all that they have written is there. Otherwise it is there until
// the world is closed; likewise if the device may still read some of it.
func (g *group) retire(p progress) {
	g.attend(p)
	if !g.closed || g.flying > 0 || len(g.failed) > 0 {
		return
	}
	for rank := range g.members {
		if m := &g.members[rank]; rank != g.rank && (m.unsure || !m.stopped || m.heard < m.stoppedAt) {
			return
		}
	}
	// Whoever has the lock is about to open what the provider does calls with, and waits for
	// the role.
	g.postponed.Store(true)
	if !g.owning.TryLock() {
		return
	}
	defer g.owning.Unlock()
	g.postponed.Store(false)
	if g.over {
		return
	}
	g.over = true
	g.lookAway(p)
	g.closing = g.closeMemory()
	switch {
	case g.own.Load() != nil:
		// Its goroutine may wait for the role.
		go g.closeOwn()
	case g.closing == nil:
		g.comm.EndExtension(p)
	}
}

// disown is for those who had the lock beside the role.
func (g *group) disown() {
	g.owning.Unlock()
	if g.postponed.Swap(false) {
		g.comm.Reactor().Do(g.retire)
	}
}

// closeOwn is the rest of retire where the provider has done calls.
func (g *group) closeOwn() {
	g.owning.Lock()
	defer g.owning.Unlock()
	if g.closing = errors.Join(g.closing, g.own.Load().close()); g.closing == nil {
		g.comm.Reactor().Do(g.comm.EndExtension)
	}
}

// closeMemory ends the use of what peers write to, or the device reads from.
func (g *group) closeMemory() error {
	err := errors.Join(g.moveOut(), g.windows.close())
	for _, b := range append(g.parked, g.cache, g.staging) {
		if b != nil {
			err = errors.Join(err, b.close())
		}
	}
	for _, e := range g.exposed {
		err = errors.Join(err, e.Close())
	}
	for _, e := range g.lent {
		e.Return()
	}
	g.parked, g.exposed, g.lent, g.cache, g.staging = nil, nil, nil, nil, nil
	return err
}
