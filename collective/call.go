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

// newCall makes a call of no shape yet. Whoever made it releases it, when it is done.
func newCall(g *group, input, output []byte, apply operator.Erased) *call {
	c := calls.Get().(*call)
	c.group, c.input, c.output, c.apply = g, input, output, apply
	return c
}

func (c *call) release() {
	c.state = state{}
	c.done = atomic.Bool{}
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
	g.near.fetch()
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
				// It does not know where words go.
				g.tell(p, source)
			}
			g.tellReady(p, c, source)
		case m.told == 0 || m.told+slots <= c.number+1:
			g.tellNear(p, source)
		}
	}
	g.attend(p)
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
		c.handGiven()
		if g.arrivals[c.number%slots][s.Peer].has(s.Number) {
			return false, nil
		}
		return true, g.gone(s.Peer, c.number)
	case schedule.Reduce:
		if err := c.apply.Apply(c.at(s.Dst), c.at(s.Src), c.at(s.Other)); err != nil {
			return false, &operatorError{err}
		}
	case schedule.Copy:
		to := c.kept(s)
		if to == nil {
			to = c.at(s.Dst)
		}
		c.copy(to, c.at(s.Src))
	case schedule.Settle:
		return c.flying > 0, nil
	}
	return false, nil
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
		g.tellEnded(p)
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

// abort is what the other ranks are told.
func (g *group) abort(why error) AbortError {
	var (
		operator *operatorError
		lost     *comm.RankError
		other    *AbortError
		mismatch *MismatchError
		differs  *ConfigError
	)
	abort := AbortError{Rank: g.rank, Reason: ReasonFailed}
	switch {
	case givenUp(why) != nil:
		abort.Reason = ReasonContext
	case errors.Is(why, errClosed):
		abort.Reason = ReasonClosed
	case errors.As(why, &operator):
		abort.Reason = ReasonOperator
	case errors.As(why, &mismatch):
		abort.Reason = ReasonMismatch
	case errors.As(why, &differs):
		abort.Reason = ReasonConfig
	case errors.As(why, &lost) && lost.Rank >= 0 && lost.Rank < g.size:
		abort.Reason, abort.Lost = ReasonLost, lost.Rank
	case errors.As(why, &other):
		// Whose failure it is.
		return *other
	}
	return abort
}
