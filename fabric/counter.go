package fabric

import (
	"context"
	"math"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-go/weft/cgo"
)

// Counter counts completions instead of listing them (fid_cntr): those of the
// endpoints and regions that it is bound to, successes and failures apart. Its
// methods may be called from any goroutine, unless the hints said OneThread:
// then by one at a time together with the domain's endpoints, because reading a
// counter moves operations on.
//
// How far a counter counts is the provider's business: sockets has 31 bits, and more
// cannot be added, set or waited for (ErrInvalid). So is whether it counts failures: sockets does, but for messages that do
// not fit their receive, tcp;ofi_rxm and shm (1.17) leave them to the completion queue.
type Counter struct {
	handle
	raw      cgo.Counter
	domain   *Domain
	canBlock bool
	closing  atomic.Bool
	// awaited is how many operations of PostWhen that are in flight have waited for it.
	awaited atomic.Int64
	// seen is the number of errors that the program knows of.
	seen atomic.Uint64

	// The lock of the domain's deferred work guards these two.
	bound    bool // to an endpoint or a region
	deferred deferredUse
}

// CounterEvents are what a counter of an endpoint counts, a set of bits.
type CounterEvents uint64

// The events of counters.
const (
	CountSends        CounterEvents = CounterEvents(cgo.CountSends)        // messages sent
	CountReceives     CounterEvents = CounterEvents(cgo.CountReceives)     // messages received
	CountReads        CounterEvents = CounterEvents(cgo.CountReads)        // reads, and fetching atomics
	CountWrites       CounterEvents = CounterEvents(cgo.CountWrites)       // writes, and other atomics
	CountRemoteReads  CounterEvents = CounterEvents(cgo.CountRemoteReads)  // reads by peers
	CountRemoteWrites CounterEvents = CounterEvents(cgo.CountRemoteWrites) // writes by peers
)

const (
	countAll = CountSends | CountReceives | CountReads | CountWrites | CountRemoteReads | CountRemoteWrites
)

var counterEventNames = setNames[CounterEvents]{
	{CountSends, "sends"},
	{CountReceives, "receives"},
	{CountReads, "reads"},
	{CountWrites, "writes"},
	{CountRemoteReads, "remote reads"},
	{CountRemoteWrites, "remote writes"},
}

// String lists what is in the set.
func (e CounterEvents) String() string { return counterEventNames.list(e) }

// OpenCounter opens a counter at 0. It counts what it is bound to: endpoints
// when they are enabled, regions with [Region.BindCounter].
//
// Implements: int fi_cntr_open(...)
func (d *Domain) OpenCounter() (*Counter, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	c := &Counter{domain: d, canBlock: true}
	raw, code := d.raw.OpenCounter(cgo.WaitUnspecified)
	if code != 0 {
		c.canBlock = false
		raw, code = d.raw.OpenCounter(cgo.WaitNone)
	}
	if code != 0 {
		return nil, fail("fi_cntr_open", d.provider, int(code))
	}
	switch core(d.provider) {
	case "shm":
		// Blocking on its own wait object never comes back.
		c.canBlock = false
	case "efa":
		// It blocks no better than by looking again, and in 2.x it keeps the lock of the domain
		// meanwhile, which it needs to look: nothing of the domain ever goes on then.
		c.canBlock = false
	}
	c.raw = raw
	c.open(kindCounter, d.provider, &d.handle)
	return c, nil
}

// wrongCounters says what is missing or does not fit of counters for an endpoint.
func wrongCounters(e *Endpoint, counters []CounterBinding) string {
	for i, b := range counters {
		switch {
		case b.Counter == nil:
			return "a counter is missing"
		case b.Counter.domain != e.domain:
			return "the counter is of another domain"
		case b.Events == 0 || b.Events&^countAll != 0:
			return "a counter of an endpoint counts some of CountSends to CountRemoteWrites"
		}
		for _, before := range counters[:i] {
			// sockets would count the second binding, too, and let go of one: the counter could never be closed.
			if twice := before.Events & b.Events; before.Counter == b.Counter && twice != 0 {
				return "a counter is bound twice for " + twice.String()
			}
		}
	}
	return ""
}

// bindCounters binds counters that the caller has entered to an endpoint that is not
// enabled yet. It holds them from then on.
//
// Implements: int fi_ep_bind(...)
func (e *Endpoint) bindCounters(counters []CounterBinding) error {
	for _, b := range counters {
		if code := e.raw.BindCounter(b.Counter.raw, uint64(b.Events)); code != 0 {
			return fail("fi_ep_bind of counter", e.provider, int(code))
		}
		e.adopt(&b.Counter.handle)
		if b.Events&CountReceives != 0 {
			e.countsReceives = append(e.countsReceives, b.Counter)
		}
	}
	return nil
}

// Read is the number of successes so far.
//
// Implements: uint64_t fi_cntr_read(...)
func (c *Counter) Read() (uint64, error) {
	if err := c.enter(); err != nil {
		return 0, err
	}
	defer c.leave()
	return c.raw.Read(), nil
}

// Errors is the number of failures so far. What it has told, no Wait tells again.
//
// Implements: uint64_t fi_cntr_readerr(...)
func (c *Counter) Errors() (uint64, error) {
	if err := c.enter(); err != nil {
		return 0, err
	}
	defer c.leave()
	n := c.raw.ReadErrors()
	c.seen.Store(n)
	return n, nil
}

// Add adds to the number of successes; deferred operations that waited for it
// begin. ErrBusy says that the counter counts deferred operations, which a program
// must leave to the provider; net.ErrClosed also that an endpoint is closed whose
// operations wait for it. The same goes for Set, AddErrors and SetErrors.
//
// Implements: int fi_cntr_add(...)
func (c *Counter) Add(n uint64) error {
	return c.change("fi_cntr_add", n, func() cgo.Code { return c.raw.Add(n) })
}

// Set sets the number of successes, like Add. Nothing may count meanwhile:
// libfabric may lose what it does.
//
// Implements: int fi_cntr_set(...)
func (c *Counter) Set(n uint64) error {
	return c.change("fi_cntr_set", n, func() cgo.Code { return c.raw.Set(n) })
}

// AddErrors adds to the number of failures, which ends a Wait.
//
// Implements: int fi_cntr_adderr(...)
func (c *Counter) AddErrors(n uint64) error {
	return c.change("fi_cntr_adderr", n, func() cgo.Code { return c.raw.AddErrors(n) })
}

// SetErrors sets the number of failures; a Wait is told of those beyond.
//
// Implements: int fi_cntr_seterr(...)
func (c *Counter) SetErrors(n uint64) error {
	return c.change("fi_cntr_seterr", n, func() cgo.Code { return c.raw.SetErrors(n) })
}

func (c *Counter) change(op string, n uint64, call func() cgo.Code) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	if detail := beyondCounting(c.provider, n); detail != "" {
		return c.invalid(op, detail)
	}
	e, err := c.fires(op, true)
	if err != nil {
		return err
	}
	if e != nil {
		defer e.leave()
	}
	return fail(op, c.provider, int(call()))
}

// beyondCounting says why a counter does not get to a number. sockets cuts numbers off to
// 32 bits, and takes them for signed ones.
func beyondCounting(provider string, n uint64) string {
	if n > math.MaxInt32 && core(provider) == "sockets" {
		return "sockets counts to " + strconv.Itoa(math.MaxInt32)
	}
	return ""
}

// errnoAvailable is FI_EAVAIL.
const errnoAvailable Errno = Errno(cgo.ErrorAvailable)

// How long one call in C blocks: Close waits for that at most.
const waitSlice = 20 * time.Millisecond

// Wait returns when the counter has reached the threshold. It returns an error
// with Errno FI_EAVAIL as soon as there are failures that neither an earlier
// Wait nor Errors has told, even if the threshold is reached; net.ErrClosed when
// the counter is closed meanwhile; and the cause of ctx when that is done.
//
// Where the provider can block it does, in slices, and a thread with it;
// elsewhere the counter is read again and again with naps in between. Either way
// that moves the operations of the endpoints on that it is bound to. It does not
// allocate, but for errors.
//
// Implements: int fi_cntr_wait(...)
func (c *Counter) Wait(ctx context.Context, threshold uint64) error {
	nap := shortestNap
	blocks := c.canBlock
	for {
		done, errors, err := c.look(threshold)
		if err != nil {
			return err
		}
		if errors != 0 {
			return &Error{
				Op: "fi_cntr_wait", Provider: c.provider, Errno: errnoAvailable,
				Detail: strconv.FormatUint(errors, 10) + " counted operations have failed",
			}
		}
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		slice := waitSlice
		if deadline, ok := ctx.Deadline(); ok {
			slice = min(slice, time.Until(deadline))
		}
		if ctx.Done() != nil {
			// A context may end at any time, and C does not know.
			slice = min(slice, waitSlice/4)
		}
		if blocks && slice >= time.Millisecond && !c.closing.Load() {
			began := time.Now()
			switch code, err := c.block(threshold, slice); {
			case err != nil:
				return err
			case code == cgo.NoSystem:
				blocks = false
			case time.Since(began) > slice/4:
				continue
			}
			// It came back at once, which may be for no reason.
		}
		if slice > 0 {
			doze(min(nap, slice))
			nap = longer(nap)
		}
	}
}

// look reads both numbers, and takes note of the failures.
func (c *Counter) look(threshold uint64) (done bool, errors uint64, err error) {
	if err := c.enter(); err != nil {
		return false, 0, err
	}
	defer c.leave()
	if detail := beyondCounting(c.provider, threshold); detail != "" {
		return false, 0, c.invalid("fi_cntr_wait", detail)
	}
	done = c.raw.Read() >= threshold
	n := c.raw.ReadErrors()
	if before := c.seen.Swap(n); n > before {
		errors = n - before
	}
	return done, errors, nil
}

func (c *Counter) block(threshold uint64, slice time.Duration) (cgo.Code, error) {
	if err := c.enter(); err != nil {
		return 0, err
	}
	defer c.leave()
	e, err := c.fires("fi_cntr_wait", false)
	if err != nil {
		return 0, err
	}
	if e != nil {
		defer e.leave()
	}
	return c.raw.Wait(threshold, int(slice/time.Millisecond)), nil
}

// Close closes the counter, and ends a Wait. ErrBusy says what still uses it:
// the endpoints and regions that it is bound to, deferred operations, and those of PostWhen
// until they are complete or their endpoint is closed.
//
// Implements: int fi_close(...)
func (c *Counter) Close() error {
	c.closing.Store(true)
	defer c.closing.Store(false)
	return c.close(func() error {
		if n := c.awaited.Load(); n > 0 {
			return c.busy("close of counter", "still open: "+strconv.FormatInt(n, 10)+" operation of PostWhen")
		}
		return fail("fi_close of counter", c.provider, int(c.raw.Close()))
	})
}

// busy is the error of a counter that is in use for something else.
func (c *Counter) busy(op, detail string) error {
	return &Error{Op: op, Provider: c.provider, Errno: Errno(syscall.EBUSY), Detail: detail}
}
