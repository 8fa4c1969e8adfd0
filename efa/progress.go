package efa

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Progress: whoever holds the role drives the device. A goroutine that waits
// for something takes the role if it is free, and drives until it has it; if
// the role is taken it follows, that is, it parks and the leader does its work.
// When nobody leads, the background goroutine does, and at once where something is
// owed to somebody who does not wait (owed.go).
//
//	caller ── role free ──> leads ── done ──> hands over to a follower, if any
//	   │                      └── nothing happens ──> parks; background leads
//	   └──── role taken ──> follows (parks) ── leader is done ──> leads
//
// Requests of those who do not lead go through the intake, a list without a
// lock. Whoever leaves the role looks at the intake once more afterwards, so
// that a request put there meanwhile is not left lying.

// request is something to be done by the leader.
type request struct {
	next *request
	run  func(r *Reactor, q *request)
	call *call
	conn *Conn
	do   func() // for run to call, off the fast path
}

// later has f done in the progress role, by whoever leads next.
func (r *Reactor) later(f func()) {
	r.push(&request{do: f, run: func(_ *Reactor, q *request) { q.do() }})
}

// call is a goroutine that waits for the reactor.
type call struct {
	request request
	conn    *Conn
	buf     []byte
	size    bool // a read that wants to know the size only
	// callback and completion are for a write that nobody waits for; sending is
	// the call of its Request, while this one waits until it is taken.
	callback   func(error)
	completion *Completion
	sending    *call
	pending    *pending
	flush      *flush
	lent       *Buffer // of a WriteBuffer
	// stream: bytes are wanted, or sent, wherever messages begin and end; aside:
	// and the device is not to have buf, because the call may have to return.
	stream, aside bool
	// task is for a call that belongs to one. patience is for how much longer than others
	// it spins; owed belongs to the role.
	task     *Task
	patience time.Duration
	owed     bool

	// Set by the leader, then done.
	n   int
	err error
	// write is what a waiting writer waits for, and cancelled why a reader has
	// given up; they belong to the role.
	write     *write
	cancelled error
	// abandoned tells one giving up from an earlier one of the same call.
	abandoned uint64

	done   atomic.Bool
	parked atomic.Bool
	bell   chan struct{}

	// In Reactor.followers, under its lock.
	following  bool
	prev, next *call
}

var calls = sync.Pool{New: func() any { return &call{bell: make(chan struct{}, 1)} }}

func newCall(c *Conn, buf []byte) *call {
	k := calls.Get().(*call)
	k.conn, k.buf = c, buf
	k.request.call, k.request.conn = k, c
	return k
}

// free gives the call back; the reactor must be done with it.
func (k *call) free() {
	select {
	case <-k.bell:
	default:
	}
	k.conn, k.buf, k.size, k.stream, k.aside, k.write = nil, nil, false, false, false, nil
	k.n, k.err, k.cancelled, k.abandoned = 0, nil, nil, 0
	k.callback, k.completion, k.sending, k.pending, k.flush = nil, nil, nil, nil, nil
	k.lent = nil
	k.request = request{}
	k.done.Store(false)
	calls.Put(k)
}

// finish ends the wait. The call must not be touched afterwards: at worst,
// what follows here rings for nothing.
func (k *call) finish(n int, err error) {
	k.n, k.err = n, err
	if k.conn != nil {
		k.conn.countError(err)
	}
	k.done.Store(true)
	// The caller sets parked and then looks at done: one of the two is seen.
	if k.parked.Load() {
		k.ring()
	}
}

func (k *call) ring() {
	select {
	case k.bell <- struct{}{}:
	default:
	}
}

// lead takes the progress role if it is free.
func (r *Reactor) lead() bool { return r.role.CompareAndSwap(0, 1) }

// leave gives up the role, and says whether something could not be posted, so
// that somebody must offer it again soon.
func (r *Reactor) leave() (pending bool) {
	pending = r.pending()
	r.role.Store(0)
	for r.intake.Load() != nil && r.lead() {
		r.step(0)
		// What this turn has put off will wake nobody either: it has come.
		pending = r.pending() || len(r.putOff) > 0
		r.role.Store(0)
	}
	return pending
}

// release gives up the role of a leader that is done: to a follower, or to the
// background if somebody is parked or something could not be posted.
func (r *Reactor) release() {
	if r.pending() {
		// What a message has brought about, credit say: waking somebody for it
		// costs far more than one turn.
		r.step(0)
	}
	r.passOn()
}

// passOn is release without a turn.
func (r *Reactor) passOn() {
	putOff := len(r.putOff) > 0
	pending := r.leave()
	if r.followers.count.Load() > 0 && r.followers.wake() {
		return
	}
	if pending || putOff && !r.resting.Load() || r.awaited() {
		r.callBackground(pending || putOff)
	}
}

// push puts a request into the intake.
func (r *Reactor) push(q *request) {
	for {
		q.next = r.intake.Load()
		if r.intake.CompareAndSwap(q.next, q) {
			return
		}
	}
}

// submit has f done in the progress role, and sees to it that somebody does it.
func (r *Reactor) submit(f func()) {
	r.later(f)
	r.Poll()
}

// takeIn does what is in the intake, oldest first, and ends what that has put beside the device.
func (r *Reactor) takeIn() {
	if r.intake.Load() != nil {
		r.takeRequests()
	}
	r.endBeside()
}

func (r *Reactor) takeRequests() {
	q := r.intake.Swap(nil)
	var first *request
	for q != nil {
		q.next, first, q = first, q, q.next
	}
	for first != nil {
		// A request may be reused as soon as it is done.
		next := first.next
		first.next = nil
		first.run(r, first)
		first = next
	}
}

const (
	// spinsInC is how often an empty queue is read again within one crossing:
	// a few microseconds, short enough for the Go scheduler.
	spinsInC = 128
	// Where there are more processes than cores, a leader reads the queue only so often
	// before it yields.
	spinsInCrowd = 4
	// A leader spins for so long before it parks: long while waits have been
	// short, because waking up costs about as much; short after that.
	longSpin  = 50 * time.Microsecond
	shortSpin = 5 * time.Microsecond
	// Who waits for much data spins for so much longer: until it can be there, even if that
	// goes slowly, but no longer than a wake-up or two are worth.
	patiencePerByte = time.Nanosecond
	mostPatience    = time.Millisecond
	// breakEvery is how often a leader that spins lets Go's scheduler in.
	breakEvery = 20 * time.Microsecond
	// shortWait is a wait that a long spin, or a little more, would have caught,
	// and mostMisses how many longer ones in a row it takes to stop trying.
	shortWait  = 4 * longSpin
	mostMisses = 16
	// mostSkipped is how many calls may be served without a turn in between, and mostSkippedBeside
	// where what they want goes and comes beside the device; mostUnread is how many turns may be
	// taken in a row that do not read the queue.
	mostSkipped       = 15
	mostSkippedBeside = 63
	mostUnread        = 15
	// noLook is, for step's spins, not even one look at the queue.
	noLook = -1
)

// postsAlone says that what is posted gets to the peer although nobody reads the
// queue, where that is worth it: it is half of the time of a short write.
func (r *Reactor) postsAlone() bool {
	return r.unread < mostUnread && r.attributes.Spin && !r.attributes.Notifies && len(r.rails) == 0
}

// await drives the reactor, or lets others drive it, until the call is done. led says that
// the caller leads already. When ctx ends, the call is abandoned, which ends it in one way or
// another.
func (r *Reactor) await(ctx context.Context, k *call, led bool) {
	ended := ctx.Done()
	var begin time.Time
	for led || !k.done.Load() {
		if led = led || r.lead(); led {
			if r.drive(k, ended) {
				return
			}
		} else {
			r.parked.Add(1)
		}
		if begin.IsZero() {
			begin = time.Now()
		}
		select {
		case <-ended:
			ended = nil
			// Once this is done, the request of the call is out of the intake.
			r.do(func() { r.abandon(k, context.Cause(ctx)) })
		default:
			r.park(k, !led, ended)
		}
		r.parked.Add(-1)
		led = false
	}
	if !begin.IsZero() {
		r.waited(begin)
	}
}

// waited notes the end of a wait, from which the next ones learn how long to spin.
func (r *Reactor) waited(begin time.Time) {
	if time.Since(begin) < shortWait {
		r.misses.Store(0)
	} else {
		r.misses.Add(1)
	}
}

// drive leads until the call is done, and says true, or until waiting any
// longer would cost more than it saves: then the caller counts as parked.
func (r *Reactor) drive(k *call, ended <-chan struct{}) bool {
	switch r.takeIn(); {
	case r.hurries(k):
		r.passOn()
		return true
	case k.done.Load() && r.postsAlone() && r.pending():
		r.unread++
		r.step(noLook)
	case !k.done.Load() && r.lookouts.places == 0 || r.pending() || r.skipped >= r.mostSkipped():
		r.step(0)
	default:
		// It has what it came for: many reads of what is here already, or writes
		// that wait for the reader, need no turn each.
		r.skipped++
	}
	if !k.done.Load() && r.attributes.Spin {
		r.spin(&k.done, ended, &k.patience)
	}
	done := k.done.Load()
	if r.unread == 0 && r.skipped == 0 {
		// Who has not looked at the queue, and calls seldom, is not to keep the
		// background from it.
		r.callerTurns.Add(1)
	}
	if done {
		r.release()
		return true
	}
	r.parked.Add(1)
	r.stats.Parks++
	putOff := len(r.putOff) > 0
	r.callBackground(r.leave() || putOff)
	return false
}

// spin takes turns for a short time until it is done, and goes on while there is
// something to do, but not beyond the end of the context. patience is for how much longer
// than usual, which may change meanwhile; it belongs to the role.
func (r *Reactor) spin(done *atomic.Bool, ended <-chan struct{}, patience *time.Duration) {
	limit := longSpin
	if r.misses.Load() > mostMisses {
		limit = shortSpin
	}
	// Most have come by the first look, which takes no longer than to read the clock.
	var begin time.Time
	breakAt := breakEvery
	for {
		spins := spinsInC
		if r.crowd.here {
			spins = spinsInCrowd
		}
		active := false
		if r.lookouts.places == 0 {
			active = r.step(spins) > 0
		} else {
			active = r.lookOut()
		}
		if done.Load() {
			return
		}
		if active {
			select {
			case <-ended:
				return
			default:
				continue
			}
		}
		if begin.IsZero() {
			begin = time.Now()
		}
		spent := time.Since(begin)
		if spent > limit+*patience {
			return
		}
		// Others may have what this one waits for: a goroutine of this process, or,
		// on a machine with few cores, another process. Where there are more
		// processors, one of them has woken for the goroutine already, and Gosched
		// wakes one for nothing, which takes its core from the peer.
		if spent > breakAt || runtime.GOMAXPROCS(0) == 1 {
			runtime.Gosched()
			spent = time.Since(begin)
			breakAt = spent + breakEvery
		}
		yield()
		// Where there are more processes than cores, one that this one waits for may have
		// run only now: then it is best to look, and let it have the core again at once.
		// What others take of the time is no reason to give up sooner.
		others := time.Since(begin) - spent
		if r.crowd.yielded(others) {
			others += r.crowd.leave()
		}
		if r.crowd.here {
			begin = begin.Add(others)
		}
	}
}

// park waits for the end of the call, for the role if the call follows, or for
// the end of the context.
func (r *Reactor) park(k *call, follow bool, ended <-chan struct{}) {
	k.parked.Store(true)
	if follow {
		r.followers.add(k)
	}
	switch {
	case k.done.Load():
	case follow && r.role.Load() == 0:
		// The leader left before it could see this follower.
	default:
		select {
		case <-k.bell:
		case <-ended:
		}
	}
	if follow {
		r.followers.remove(k)
	}
	k.parked.Store(false)
}

// callBackground makes the background goroutine drive. If it waits already, it
// needs to be told only of what its wait does not notice.
func (r *Reactor) callBackground(pending bool) {
	if r.resting.Load() {
		select {
		case r.bell <- struct{}{}:
		default:
		}
	} else if pending || !r.attributes.Notifies {
		if pending {
			r.called.Store(true)
		}
		r.device.Wake()
	}
}

// mostRest is after how many times idleCheck the background looks at most.
const mostRest = 16

// background drives while nobody else does.
func (r *Reactor) background() {
	wear(r.labels.reactor)
	defer close(r.backgroundEnded)
	timer := time.NewTimer(r.config.idleCheck)
	defer timer.Stop()
	var seen uint64
	waited := false
	rest := r.config.idleCheck
	for !r.closed.Load() {
		turns := r.callerTurns.Load()
		if (turns == seen || r.called.Load()) && r.lead() {
			rest = r.config.idleCheck
			r.called.Store(false)
			seen = turns
			r.takeLeft()
			r.lookAround = true
			active, paid := r.drivePaying()
			r.lookAround = false
			armed := !active && r.arm()
			r.countBackground(waited, active)
			waited = false
			broken := r.broken != nil
			pending := r.leave()
			switch {
			case broken:
				// The device is not looked at any more, and says for ever that
				// there is something. What is asked for is done by who asks.
				<-r.bell
			case paid:
				// Who has heard of something is the one to drive now, if anybody.
				seen--
				runtime.Gosched()
			case active || !armed:
				// Callers that have just been served may want to lead.
				runtime.Gosched()
			case pending:
				// What was refused is offered again soon, whatever comes.
				r.wait(time.Millisecond)
				waited = true
			default:
				r.wait(time.Second)
				waited = true
			}
			continue
		}
		// Callers drive: keep out of their way, but look after a while whether
		// they still do. That takes a core from them or from their peers, so the
		// longer they have, the later.
		seen = turns
		r.resting.Store(true)
		// Who has called just before that has not seen that a bell is needed.
		if (r.called.Load() || r.awaited()) && r.role.Load() == 0 {
			r.resting.Store(false)
			r.called.Store(true)
			continue
		}
		timer.Reset(rest)
		rest = min(2*rest, mostRest*r.config.idleCheck)
		select {
		case <-r.bell:
			r.called.Store(true)
		case <-timer.C:
		}
		r.resting.Store(false)
	}
}
