package collective

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/kernelcopy"
)

type progress = efa.Progress

// slots is how many calls of a communicator are under way at a time. Each has a part of
// the cache.
const slots = 4

// group is what a communicator has for its collective calls. But for what does not change,
// it belongs to the progress role.
type group struct {
	comm       *comm.Comm
	rank, size int
	sameHost   bool // all ranks are on one, and whoever puts does the work: shm
	config     Config
	given      *Config // by Configure
	table      table   // of the algorithms
	window     int     // of this rank, for words; -1 if there is none
	slot       int     // bytes that a call has of the cache
	// checked is the last call with options of its own of which there is a plan.
	checked atomic.Pointer[schedule.Call]
	// introduction is what the others are told of config.
	introduction introduction

	members []member
	plans   plans
	cache   *block // nil if there is none
	staging *block // where inputs are copied to, if the device needs registration
	near    neighbourhood
	windows windows
	// quickKernel says whether one copy by the kernel between processes is better than two here: the first call
	// with a long result finds out.
	quickKernel func() bool
	parked      []*block // to which something may still be on its way
	// exposed is what the device may still read from, for calls that have ended, and lent
	// what of it is of arenas.
	exposed, lent []*efa.Exposure

	// own is what the provider does calls with, once one was asked for.
	own    atomic.Pointer[offload]
	owning sync.Mutex // while that is opened or closed
	// postponed says that somebody who had owning kept retire from its work.
	postponed atomic.Bool
	over      bool   // under owning: no more of them is opened
	closing   error  // under owning: what has failed in retire
	next      uint64 // the number of the next call
	released  uint64 // all calls before it are done
	calls     [slots]*call
	owners    [slots]*call // the last that had a slot
	landings  [slots][]landing
	signals   []signals
	waiting   []*call      // for a slot
	few       [slots]*call // where waiting is, as long as it need not be allocated
	// beginning: those that wait are being begun.
	beginning bool
	ended     [slots]*planned // of calls that are done, while those before them are not
	arrivals  [slots][]arrivalSet
	counts    [slots]int // how many are in arrivals
	asking    int        // members that have asked for a call that is not done
	failure   error
	flying    int      // writes of all calls under way
	failed    []*call  // of which something of the caller's is still in use
	respite   *respite // for calls that have failed
	drained   chan struct{}
	draining  bool // the world is about to be closed
	stats     Stats
	closed    bool // the communicator is

	refused   attempts // which calls were, on this rank
	forgotten uint64   // of those before it is not known any more
	warned    bool     // another rank was refused a call that is still to come here
}

func kernelIsQuick() bool { return kernelcopy.Measure().Quick() }

// member is what is known of a rank, and what it knows of this one.
type member struct {
	known    bool
	released uint64 // it has done all calls before
	cache    fabric.Remote
	near     *outbox // its cache, if it is mapped
	invited  bool    // to map this one's
	window   int
	ready    [slots]readiness
	scratch  [slots]apart // for a readiness that follows

	told  uint64 // what it knows of this rank's released, and 1; 0 for nothing
	put   uint64 // the last call in which this rank has put to it, and 1
	asks  uint64 // it wants to be told when so many calls are done
	asked uint64 // it was asked to tell when it has done so many

	// What is between the two when calls have failed: see letgo.go.
	shown     uint64 // the last call for which it was told of memory of the caller's, and 1
	announced uint64 // the last call for which it has said where its memory is, and 1
	words     uint64 // that this rank has written to it
	unsure    bool   // of one it is not known whether it will come
	dismissed bool   // it was told that this rank writes no more
	heard     uint64 // words that have come from it
	stopped   bool   // it writes no more, after so many words
	stoppedAt uint64

	refused attempts // which of its calls were, of those that are still to come here
	closed  bool     // it makes no call from released on
	lost    error
	leaving *respite // it has left, and words of it are still to come
}

// gone is why nothing comes of a rank in a call any more, if so.
func (g *group) gone(rank int, number uint64) error {
	m := &g.members[rank]
	if m.closed && number >= m.released && m.lost == nil {
		return &AbortError{Rank: rank, Reason: ReasonClosed}
	}
	return m.lost
}

// arrivalSet has a bit for each put or signal of a rank in a call that has arrived.
type arrivalSet []uint64

// add sets a bit, and says whether it was not set before.
func (a *arrivalSet) add(number int) bool {
	for len(*a) <= number/64 {
		*a = append(*a, 0)
	}
	word, bit := &(*a)[number/64], uint64(1)<<(number%64)
	added := *word&bit == 0
	*word |= bit
	return added
}

func (a arrivalSet) remove(number int) {
	if number/64 < len(a) {
		a[number/64] &^= 1 << (number % 64)
	}
}

func (a arrivalSet) empty() bool {
	for _, word := range a {
		if word != 0 {
			return false
		}
	}
	return true
}

func (a arrivalSet) has(number int) bool {
	return number/64 < len(a) && a[number/64]&(1<<(number%64)) != 0
}

// groupOf returns what a communicator has for its calls, and makes it for the first one.
func groupOf(c *comm.Comm, given *Config) (*group, error) {
	if x := c.Extended(); x != nil {
		return x.(*group), nil
	}
	if c.Size() > 1 && !c.Reactor().CanWrite() {
		return nil, &ProviderError{Provider: c.Provider()}
	}
	var config Config
	if given != nil {
		config = *given
	}
	config, wrong := config.withDefaults()
	if wrong != nil {
		if given != nil {
			return nil, wrong // and there may be a better one
		}
		// It is the variable's. The others may have it right, and would wait for this rank:
		// what can be had without the variable tells them.
		config = Config{}
		_ = config.fill() // of nothing, that cannot fail
	}
	x, err := c.Extend(func(p progress, window int) comm.Extension {
		g := &group{comm: c, rank: c.Rank(), size: c.Size(), sameHost: c.Reactor().SameHost(), config: config, given: given, table: newTable(config, c.Size()), window: window, quickKernel: kernelIsQuick}
		g.introduction = introduce(&config)
		g.windows.registered = c.Reactor().NeedsRegistration()
		g.members = make([]member, g.size)
		g.signals = make([]signals, g.size)
		for i := range g.members {
			g.members[i].window = -1
			g.signals[i] = signals{g, i}
		}
		for i := range g.arrivals {
			g.arrivals[i] = make([]arrivalSet, g.size)
			g.landings[i] = make([]landing, g.size)
			for rank := range g.size {
				g.landings[i][rank] = landing{g, i, rank}
			}
		}
		g.slot = config.CachePages * pageSize / slots &^ (alignment - 1)
		g.windows.shareable = g.sameHost && g.slot > 0
		if g.size > mostWordSource {
			g.window = -1
		}
		return g
	})
	if err != nil {
		return nil, errors.Join(wrong, err)
	}
	g := x.(*group)
	if wrong != nil {
		c.Reactor().Do(func(p progress) { g.fail(p, wrong) })
		return nil, wrong
	}
	return g, nil
}

// prepare gets the cache, for the first call.
func (g *group) prepare(p progress) error {
	if g.slot == 0 || g.size == 1 || g.cache != nil {
		return nil
	}
	var cache *block
	if g.sameHost && g.cacheSize() <= largestShared {
		// Where the system does not give any, all goes by the device.
		cache, _ = newSharedBlock(p, g.cacheSize())
	}
	var err error
	if cache == nil {
		if cache, err = newBlock(p, g.headerAt()); err != nil {
			return err
		}
	}
	if g.comm.Reactor().NeedsRegistration() {
		if g.staging, err = newBlock(p, slots*g.slot); err != nil {
			return errors.Join(err, cache.close())
		}
	}
	if g.cache = cache; cache.shared != nil {
		g.showCache(p)
	}
	return nil
}

// reserved is where the part of the cache begins that has a byte for each rank: what a signal
// writes, so that there is something to carry its word.
func (g *group) reserved() int { return slots * g.slot }

// active is the call of a number that is under way, or nil.
func (g *group) active(number uint64) *call {
	if c := g.calls[number%slots]; c != nil && c.number == number {
		return c
	}
	return nil
}

// arrived takes in that a put or a signal is there.
func (g *group) arrived(p progress, number uint64, source, put int) {
	if g.arrivals[number%slots][source].add(put) {
		g.counts[number%slots]++
	}
	if c := g.active(number); c != nil {
		g.run(p, c)
	}
}

// resume has the calls go on that may wait for a peer to release its cache.
func (g *group) resume(p progress) {
	for number := g.released; number < g.released+slots; number++ {
		if c := g.active(number); c != nil {
			g.run(p, c)
		}
	}
}

// tell tells a rank which calls are done, and where the cache is.
func (g *group) tell(p progress, rank int) {
	m := &g.members[rank]
	if m.lost != nil {
		return
	}
	n := comm.Notice{
		Tag: noticeTag(noticeReleased, g.introduction.low), ID: g.released,
		Length: uint64(g.window+1) | g.introduction.high,
	}
	if g.cache != nil {
		n.Remote = g.cache.at(0)
		g.invite(p, rank)
	}
	m.told = g.released + 1
	// If it cannot be sent, the rank is lost, and this one hears of that.
	_ = g.comm.Notify(p, rank, n)
}

// done notes that a call has ended well, and begins those that wait for its slot.
func (g *group) done(p progress, number uint64, planned *planned) {
	g.ended[number%slots] = planned
	for g.ended[g.released%slots] != nil {
		i := g.released % slots
		if err := g.unasked(g.released, g.ended[i]); err != nil {
			g.fail(p, err)
			return
		}
		sources := g.ended[i].sources
		g.ended[i] = nil
		for _, source := range sources {
			clear(g.arrivals[i][source])
		}
		g.counts[i] = 0
		g.released++
		// Who has put to this rank may do so again, and hears of that before it has to wait. What
		// is put to it meanwhile says so for nothing: where that is to be expected, a notice is
		// put off for longer.
		for _, source := range sources {
			m, late := &g.members[source], uint64(slots/2)
			if m.put+slots > g.released {
				late = slots - 1
			}
			if m.told+late <= g.released+1 {
				g.tellNear(p, source)
			}
		}
	}
	if g.asking > 0 {
		g.answer(p)
	}
	g.beginWaiting(p)
	g.attend(p)
	g.tellDrained()
}

// unasked is an error if more has arrived in a call than that waits for: a rank makes
// another one.
func (g *group) unasked(number uint64, planned *planned) error {
	i := number % slots
	if g.counts[i] == planned.awaited {
		return nil
	}
	for source, set := range g.arrivals[i] {
		for _, step := range planned.plan.Steps {
			if step.Action == schedule.Await && step.Peer == source {
				set.remove(step.Number)
			}
		}
		if !set.empty() {
			return g.mismatch(source, number, planned.collective)
		}
	}
	return nil
}

// beginWaiting begins the calls for which there is a slot now.
func (g *group) beginWaiting(p progress) {
	if g.beginning {
		// A call that ends at once comes here again.
		return
	}
	g.beginning = true
	for len(g.waiting) > 0 && g.waiting[0].number < g.released+slots {
		c := g.waiting[0]
		g.waiting = g.waiting[1:]
		g.begin(p, c)
	}
	g.beginning = false
}

// answer tells those who have asked.
func (g *group) answer(p progress) {
	for rank := range g.members {
		if m := &g.members[rank]; m.asks > 0 && m.asks <= g.released {
			m.asks = 0
			g.asking--
			g.tell(p, rank)
		}
	}
}

// fail ends all calls, here and on the other ranks, for good.
func (g *group) fail(p progress, why error) {
	if g.failure != nil {
		return
	}
	g.failure = why
	g.own.Load().stop()
	// Whoever has heard of it tells whose failure it is.
	abort := g.abort(why)
	n := comm.Notice{Tag: noticeTag(noticeFailed, 0), ID: uint64(abort.Reason) | uint64(abort.Lost)<<reasonBits, Length: uint64(abort.Rank)}
	for rank := range g.members {
		if rank != g.rank && g.members[rank].lost == nil {
			_ = g.comm.Notify(p, rank, n)
		}
	}
	for i, c := range g.calls {
		if c != nil {
			g.calls[i] = nil
			c.fail(p, why)
		}
	}
	g.tellStopped(p)
	if len(g.failed) > 0 {
		g.respite = newRespite(g, (*group).giveUp)
	}
	for _, c := range g.waiting {
		c.fail(p, why)
	}
	g.waiting = nil
	g.attend(p)
	g.tellDrained()
}

// Lost implements comm.Extension. What a rank that has left in order has written before counts: its
// word of that by the device may be seen after the end of its connection, which does not go by it.
func (g *group) Lost(p progress, rank int, why error) {
	g.takeAll(p, rank)
	m := &g.members[rank]
	if !errors.Is(why, comm.ErrLeft) || g.failure != nil || !m.stopped || m.heard >= m.stoppedAt {
		g.lose(p, rank, why)
		return
	}
	m.leaving = newRespite(g, func(g *group, p progress) { g.lose(p, rank, why) })
}

// lose ends what waits for a rank: calls fail that need something of it. If it has not
// left in order, so do the others, which may wait for other ranks for ever: on shm, what is
// written to those is complete after what was written to the lost one before, maybe for
// another communicator.
func (g *group) lose(p progress, rank int, why error) {
	m := &g.members[rank]
	if m.leaving != nil {
		m.leaving.end()
		m.leaving = nil
	}
	m.lost = &comm.RankError{Rank: rank, Cause: why}
	if !errors.Is(why, comm.ErrLeft) {
		g.fail(p, m.lost)
	}
	g.resume(p)
	g.settle(p)
	g.attend(p)
	g.tellDrained()
}

// Closed implements comm.Extension.
func (g *group) Closed(p progress) {
	switch {
	case g.next > g.released:
		g.fail(p, errClosed)
	case g.failure == nil && !g.draining:
		// The others may need to know what is done here, and nobody answers from now on.
		for rank := range g.members {
			if m := &g.members[rank]; rank != g.rank && m.lost == nil {
				m.dismissed = true
				_ = g.comm.Notify(p, rank, comm.Notice{Tag: noticeTag(noticeClosed, 0), ID: g.released, Length: m.words})
			}
		}
	}
	g.failure, g.closed = errClosed, true
	g.own.Load().stop()
	g.tellStopped(p)
	g.retire(p)
}

// Drain implements comm.Extension: the others have had what was put to them.
func (g *group) Drain(ctx context.Context) error {
	drained := make(chan struct{})
	g.comm.Reactor().Do(func(p progress) {
		g.drained, g.draining = drained, true
		for rank := range g.members {
			m := &g.members[rank]
			if m.put > m.released && m.lost == nil && !m.closed && g.failure == nil {
				m.asked = m.put
				_ = g.comm.Notify(p, rank, comm.Notice{Tag: noticeTag(noticeAsk, m.put-1)})
			}
		}
		g.tellDrained()
	})
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("collective: other ranks have not ended their calls"), ctx.Err())
	}
}

// tellDrained tells who drains that there is nothing to wait for any more.
func (g *group) tellDrained() {
	if g.drained == nil {
		return
	}
	for rank := range g.members {
		if m := &g.members[rank]; m.asked > m.released && m.lost == nil && !m.closed && g.failure == nil {
			return
		}
	}
	close(g.drained)
	g.drained = nil
}

// Release implements comm.Extension.
func (g *group) Release() error {
	g.comm.Reactor().Do(g.release)
	g.owning.Lock()
	defer g.owning.Unlock()
	g.over = true
	return errors.Join(g.closing, g.own.Load().close(), g.closeMemory())
}
