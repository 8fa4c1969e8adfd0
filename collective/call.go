package collective

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// call is one call of a rank, from its begin until its end was seen.
type call struct {
	task efa.Task
	done atomic.Bool
	state
}

// state is what a call is used for. But for what is set before it begins, and read when
// it is done, it belongs to the progress role.
type state struct {
	group  *group
	shape  shape
	input  []byte // the caller's; read only, unless places.inPlace
	output []byte // likewise, where the result goes: at the end, or at once if places.own
	apply  operator.Erased
	// bound: when the wait for it is given up, so is the call.
	bound bool

	begun   bool
	idle    bool // nobody waits for the task, which was waited for before
	waiting bool // somebody waits for the task, so that it has to be finished
	err     error

	number uint64
	// provision: the provider does it, and not a plan.
	provision *provision
	planned   *planned
	step      int
	running   bool
	places
	write    efa.RemoteWrite
	flying   int // writes under way
	failure  error
	inFlight error         // an *efa.InFlightError or several
	stranded bool          // it has one of a connection, which knows when its write ends
	released chan struct{} // for who was told that memory is still in use
}

var calls = sync.Pool{New: func() any { return &call{} }}

// newCall makes a call. Whoever made it releases it, when it is done.
func newCall(g *group, s shape, input, output []byte, apply operator.Erased) *call {
	c := calls.Get().(*call)
	c.group, c.shape, c.input, c.output, c.apply = g, s, input, output, apply
	return c
}

func (c *call) release() {
	c.state = state{}
	c.done.Store(false)
	calls.Put(c)
}

// Start implements efa.Work.
func (c *call) Start(p progress) {
	c.waiting = true
	if c.begun {
		if c.done.Load() {
			c.wake(p)
		}
		return
	}
	c.begun = true
	g := c.group
	g.stats.Calls[c.shape.Collective].Begun++
	if g.failure != nil {
		c.fail(p, g.failure)
		return
	}
	if g.checkRefused(p); g.failure != nil {
		c.fail(p, g.failure)
		return
	}
	g.enqueue(p, c)
}

// enqueue gives a call its number, and has it begin when there is a slot.
func (g *group) enqueue(p progress, c *call) {
	c.number = g.next
	g.next++
	if len(g.waiting) == 0 {
		g.waiting = g.few[:0]
	}
	g.waiting = append(g.waiting, c)
	g.beginWaiting(p)
}

// Abandon implements efa.Work. A call cannot be taken back, so if it is given up, all
// ranks do. It ends when nothing of the caller's is with the device any more.
func (c *call) Abandon(p progress, why error) {
	switch {
	case !c.waiting:
	case c.bound:
		c.group.fail(p, &contextError{why})
	default:
		c.waiting = false
		p.Finish(&c.task, why)
	}
}

// begin gives a call its memory and has it go.
func (g *group) begin(p progress, c *call) {
	if g.failure != nil {
		c.fail(p, g.failure)
		return
	}
	if c.planned == refusal {
		g.done(p, c.number, refusal)
		c.release()
		return
	}
	if c.provision != nil {
		g.offload(p, c)
		return
	}
	if err := g.open(p, c); err != nil {
		g.fail(p, err)
		c.fail(p, err)
		return
	}
	if next := (g.rank + 1) % g.size; g.size > 1 && g.members[next].told == 0 {
		// Ranks with other parameters may not wait for this one, and it for them in vain.
		// Of ranks that do not all have the same, one differs from the one before it.
		g.tell(p, next)
	}
	g.calls[c.number%slots] = c
	g.owners[c.number%slots] = c
	for _, source := range c.planned.sources {
		m := &g.members[source]
		switch {
		case m.lost != nil:
		case c.large:
			if m.told == 0 {
				// It does not know the window.
				g.tell(p, source)
			}
			g.tellReady(p, c, source)
		case m.told == 0 || m.told+slots <= c.number+1:
			g.tell(p, source)
		}
	}
	g.run(p, c)
}

// at is the memory of a span.
func (c *call) at(s schedule.Span) []byte {
	e := c.shape.element
	return c.spaces[s.Space][s.Offset*e : (s.Offset+s.Length)*e]
}

// run takes the steps of a call, up to one that has to wait.
func (g *group) run(p progress, c *call) {
	if c.running || c.failure != nil {
		return
	}
	if c.provision != nil {
		if err := g.missing(c.number); err != nil {
			g.fail(p, err)
		}
		return
	}
	c.running = true
	var err error
	for c.step < len(c.planned.plan.Steps) {
		var wait bool
		if wait, err = g.take(p, c, &c.planned.plan.Steps[c.step]); wait || err != nil {
			break
		}
		c.step++
	}
	c.running = false
	switch {
	case err != nil:
		g.fail(p, err)
	case c.step == len(c.planned.plan.Steps) && c.flying == 0 && c.failure == nil:
		g.finish(p, c)
	}
}

// take takes a step, or says that it has to wait.
func (g *group) take(p progress, c *call, s *schedule.Step) (wait bool, err error) {
	switch s.Action {
	case schedule.Put, schedule.Signal:
		return g.put(p, c, s)
	case schedule.Await:
		if g.arrivals[c.number%slots][s.Peer].has(s.Number) {
			return false, nil
		}
		return true, g.gone(s.Peer, c.number)
	case schedule.Reduce:
		if err := c.apply.Apply(c.at(s.Dst), c.at(s.Src), c.at(s.Other)); err != nil {
			return false, &operatorError{err}
		}
	case schedule.Copy:
		copy(c.at(s.Dst), c.at(s.Src))
	case schedule.Settle:
		return c.flying > 0, nil
	}
	return false, nil
}

// put begins to write to a peer.
func (g *group) put(p progress, c *call, s *schedule.Step) (wait bool, err error) {
	to := &g.members[s.Peer]
	var remote fabric.Remote
	e := c.shape.element
	offset := s.Dst.Offset * e
	switch {
	case g.gone(s.Peer, c.number) != nil:
		return false, g.gone(s.Peer, c.number)
	case c.large:
		r := &to.ready[c.number%slots]
		if !r.valid || r.number != c.number {
			return true, nil
		}
		if r.fingerprint != c.fingerprintWith(s.Peer) {
			return false, &MismatchError{s.Peer, c.shape.Collective}
		}
		remote = r.output
		if s.Dst.Space == schedule.Scratch {
			remote = r.scratch
		}
	default:
		if !to.known || to.released+slots <= c.number {
			return true, nil
		}
		remote = to.cache
		offset += int(c.number%slots) * g.slot
		if s.Dst.Space == schedule.Scratch {
			offset += aligned(c.planned.output)
		}
	}
	to.put = c.number + 1
	if s.Action == schedule.Signal {
		return unreachable(g.signal(p, c, s, remote))
	}
	remote.Address += uint64(offset)
	src, local := c.at(s.Src), c.exposures[s.Src.Space]
	if !g.hasWord(s, len(src)) {
		return unreachable(g.putAndNotify(p, c, s, src, local, remote))
	}
	if err := g.writeWord(p, c, s, src, local, remote, &g.landings[c.number%slots][s.Peer]); err != nil {
		return unreachable(err)
	}
	c.flying++
	return false, nil
}

// signal tells a peer something. A write of nothing much carries the word, which costs half of
// what a notice does. Its byte is the group's, so that the call need not wait for its end.
func (g *group) signal(p progress, c *call, s *schedule.Step, cache fabric.Remote) error {
	if c.large || g.cache == nil || !g.hasWord(s, 1) {
		return g.notifyArrived(p, c.number, s)
	}
	at := g.reserved() + g.rank
	cache.Address += uint64(at)
	return g.writeWord(p, c, s, g.cache.memory[at:at+1], g.cache.exposure, cache, &g.signals[s.Peer])
}

// writeWord begins a write that carries a word.
func (g *group) writeWord(p progress, c *call, s *schedule.Step, src []byte, local *efa.Exposure, remote fabric.Remote, sender efa.Sender) error {
	to := &g.members[s.Peer]
	c.write = efa.RemoteWrite{Src: src, Local: local, To: remote, Tell: true, Immediate: wordOf(c.number, g.rank, s.Number, g.released)}
	if err := g.comm.Write(p, s.Peer, to.window, &c.write, sender); err != nil {
		return err
	}
	if to.told > 0 && s.Number < fewNumbers {
		to.told = g.released + 1
	}
	to.words++
	g.flying++
	return nil
}

// hasWord says whether a write of so many bytes for a step can carry a word.
func (g *group) hasWord(s *schedule.Step, bytes int) bool {
	return g.members[s.Peer].window >= 0 && g.size <= mostWordSource && s.Number < mostWordNumber && bytes <= g.comm.MaxWrite(s.Peer)
}

// unreachable has a call wait for word of a peer that is gone, as it seems: what that has
// said before may be why.
func unreachable(err error) (wait bool, fatal error) {
	if err != nil {
		var lost *comm.RankError
		if errors.As(err, &lost) {
			return true, nil
		}
	}
	return false, err
}

func (g *group) notifyArrived(p progress, number uint64, s *schedule.Step) error {
	return g.comm.Notify(p, s.Peer, comm.Notice{Tag: noticeTag(noticeArrived, number), ID: uint64(s.Number)})
}

// landing hears of the ends of writes to a rank, by the call that has a slot.
type landing struct {
	group      *group
	slot, rank int
}

// Sent implements efa.Sender.
func (l *landing) Sent(p progress, err error) { l.group.owners[l.slot].landed(p, l.rank, err) }

// signals hears of the ends of signals to a rank, for which no call waits.
type signals struct {
	group *group
	rank  int
}

// Sent implements efa.Sender.
func (s *signals) Sent(p progress, err error) {
	g := s.group
	g.flying--
	if err != nil {
		g.members[s.rank].unsure = true
		if errors.Is(err, efa.ErrPeerLost) {
			err = &comm.RankError{Rank: s.rank, Cause: err}
		}
	}
	switch {
	case g.failure != nil:
		g.tellStopped(p)
		g.settle(p)
		g.retire(p)
	case err != nil:
		g.fail(p, err)
	}
}

// landed takes in the end of a write.
func (c *call) landed(p progress, rank int, err error) {
	g := c.group
	c.flying--
	g.flying--
	if errors.Is(err, efa.ErrPeerLost) {
		err = &comm.RankError{Rank: rank, Cause: err}
	}
	if err != nil {
		g.members[rank].unsure = true
		var in *efa.InFlightError
		if errors.As(err, &in) {
			c.inFlight, c.stranded = errors.Join(c.inFlight, in), true
		}
	}
	switch {
	case c.failure != nil:
		g.tellStopped(p)
		g.settle(p)
		g.retire(p)
	case err != nil:
		g.fail(p, err)
	default:
		g.run(p, c)
	}
}

// loudPut is a put that its peer is to be told of by a notice, when all of it is there.
type loudPut struct {
	call *call
	step *schedule.Step
	left int
}

// putAndNotify writes what does not go with a word, in pieces if need be.
func (g *group) putAndNotify(p progress, c *call, s *schedule.Step, src []byte, local *efa.Exposure, to fabric.Remote) error {
	l := &loudPut{call: c, step: s}
	most := g.comm.MaxWrite(s.Peer)
	for len(src) > 0 {
		n := min(len(src), most)
		c.write = efa.RemoteWrite{Src: src[:n], Local: local, To: to}
		if err := g.comm.Write(p, s.Peer, -1, &c.write, l); err != nil {
			return err
		}
		l.left++
		c.flying++
		g.flying++
		src = src[n:]
		to.Address += uint64(n)
	}
	return nil
}

// Sent implements efa.Sender.
func (l *loudPut) Sent(p progress, err error) {
	l.left--
	c := l.call
	if err == nil && l.left == 0 && c.failure == nil {
		err = c.group.notifyArrived(p, c.number, l.step)
	}
	c.landed(p, l.step.Peer, err)
}

// finish ends a call, well if nothing has come that it does not wait for.
func (g *group) finish(p progress, c *call) {
	if err := g.unasked(c.number, c.planned); err != nil {
		g.fail(p, err)
		return
	}
	c.hand()
	var err error
	if c.window != nil {
		err = g.windows.give(c.window)
		c.window = nil
	}
	number, planned := c.number, c.planned
	g.calls[number%slots] = nil
	c.end(p, err)
	g.done(p, number, planned)
}

// end is the end of a call, once.
func (c *call) end(p progress, err error) {
	err = told(err)
	if c.inFlight != nil {
		err = errors.Join(err, c.inFlight)
	}
	if c.released == nil {
		if closeErr := c.giveBack(); closeErr != nil {
			err = errors.Join(err, closeErr)
		}
	}
	c.err = err
	counts := &c.group.stats.Calls[c.shape.Collective]
	if err == nil {
		counts.Done++
		counts.InputBytes += uint64(len(c.input))
	} else {
		counts.Failed++
	}
	c.done.Store(true)
	c.wake(p)
}

func (c *call) wake(p progress) {
	if c.waiting {
		// Whoever waits may give the call back from here on.
		c.waiting = false
		p.Finish(&c.task, nil)
	}
}

// operatorError says that an operator has failed.
type operatorError struct{ cause error }

func (e *operatorError) Error() string { return fmt.Sprintf("collective: %v", e.cause) }

func (e *operatorError) Unwrap() error { return e.cause }

// contextError says that why a call was given up is the cause of its context. That may be any
// error, even one of another communicator's call, so it is not unwrapped here; who made the
// call is told the cause itself.
type contextError struct{ cause error }

func (e *contextError) Error() string { return e.cause.Error() }

// givenUp returns the error if it is one. Inside of another it would be that of another
// communicator's call.
func givenUp(err error) *contextError {
	given, _ := any(err).(*contextError)
	return given
}

// told is what the one who made the call is told.
func told(err error) error {
	if given := givenUp(err); given != nil {
		return given.cause
	}
	return err
}

// reasonOf is what the other ranks are told.
func reasonOf(why error) AbortReason {
	var (
		operator *operatorError
		lost     *comm.RankError
		other    *AbortError
		mismatch *MismatchError
		differs  *ConfigError
	)
	switch {
	case givenUp(why) != nil:
		return ReasonContext
	case errors.Is(why, errClosed):
		return ReasonClosed
	case errors.As(why, &operator):
		return ReasonOperator
	case errors.As(why, &mismatch):
		return ReasonMismatch
	case errors.As(why, &differs):
		return ReasonConfig
	case errors.As(why, &lost):
		return ReasonLost
	case errors.As(why, &other):
		return other.Reason
	}
	return ReasonFailed
}
