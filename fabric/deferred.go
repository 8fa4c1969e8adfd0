package fabric

import (
	"runtime"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// Deferred is an operation that the provider begins by itself when a counter has
// reached a threshold (struct fi_deferred_work). Of the providers without
// special hardware only sockets has them; the capability FI_TRIGGER of an info
// says so, and without it everything here is ErrNotSupported. sockets counts
// successes for thresholds, and cannot cancel.
//
// What the operation uses stays with it until Close: its buffers are pinned if
// they are Go memory, and must not be touched before it is complete. Methods may
// be called from any goroutine.
type Deferred struct {
	handle
	domain    *Domain
	endpoint  *Endpoint // nil: it changes a counter
	when      Trigger
	target    *Counter // for a change of a counter
	done      *Counter
	ownsDone  bool
	receive   bool
	flushes   uint64
	work      cgo.Work
	pinner    runtime.Pinner
	cancelled bool
	uses      descriptors
}

// Defer hands an operation to the provider for later: any kind but those that
// inject, without Peek, Claim, Discard and MultiReceive. What Turn would fail is
// refused, for the same reason. The operation has no completion in a queue; done
// counts its end instead. It may count the ends of many deferred operations of this
// endpoint, but nothing else meanwhile. Without it (nil) the operation gets a counter
// of its own; see [Deferred.Counter]. A failure is counted among the counter's
// errors, but not by sockets, which only adds to the Strays of the queue. Deferring
// allocates, because the operation is a handle of its own; PostWhen does not.
//
// The triggering counter may be one that is bound to this endpoint, but not to
// others. ErrInvalid says what does not fit, ErrBusy that a region of the operation
// is being closed.
//
// Implements: int fi_control(...)
func (e *Endpoint) Defer(op Op, when Trigger, done *Counter) (f *Deferred, err error) {
	const call = "FI_QUEUE_WORK"
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	d := e.domain
	if err := when.wrong(call, d, e.Info()); err != nil {
		return nil, err
	}
	if err := e.deferrable(call, &op); err != nil {
		return nil, err
	}
	if done != nil && (done.domain != d || done == when.Counter) {
		return nil, done.misused(call, "completions are counted in the same domain, and not by the counter that is waited for")
	}
	own := done == nil
	if own {
		if done, err = d.OpenCounter(); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				_ = done.Close()
			}
		}()
	}
	used := []*handle{&d.handle, &when.Counter.handle, &done.handle}
	if err := enterAll(used); err != nil {
		return nil, err
	}
	defer leaveAll(used)
	if e.turn == nil {
		return nil, e.notEnabled(call)
	}
	if err := e.whole(call); err != nil {
		return nil, err
	}
	f = &Deferred{domain: d, endpoint: e, when: when, done: done, ownsDone: own, receive: kinds[op.Kind].receive}
	// Before the look at its regions: those that are open then stay so.
	f.uses.fill(&op)
	d.inUse.addDeferred(f)
	defer func(f *Deferred) {
		if err != nil {
			d.inUse.removeDeferred(f)
		}
	}(f)
	if errno, why := e.unfit(&op); errno != 0 {
		return nil, &Error{Op: call, Provider: e.provider, Errno: errno, Detail: why}
	}
	d.deferred.Lock()
	defer d.deferred.Unlock()
	if done.bound {
		return nil, done.misused(call, "a counter of an endpoint or a region cannot count deferred operations")
	}
	if err := when.Counter.join(call, done, e); err != nil {
		return nil, err
	}
	var ok bool
	if f.work, ok = cgo.NewWork(); !ok {
		return nil, fail(call, d.provider, int(syscall.ENOMEM))
	}
	if f.fill(&op) != descriptorOpen {
		f.work.Free()
		return nil, &Error{Op: call, Provider: e.provider, Errno: Errno(syscall.EBUSY), Detail: "a region of it is being closed"}
	}
	u := &done.deferred
	if u.queued == 0 {
		u.base = done.raw.Read() + done.raw.ReadErrors()
	}
	if code := f.work.Queue(d.raw, e.raw, when.Counter.raw, when.Threshold, done.raw); code != 0 {
		f.work.Free()
		f.pinner.Unpin()
		return nil, fail(call, d.provider, int(code))
	}
	u.queued++
	u.open++
	f.flushes = d.deferred.flushes
	f.open("deferred operation", d.provider, &d.handle, &when.Counter.handle, &done.handle)
	return f, nil
}

// deferrable refuses operations that cannot be deferred.
func (e *Endpoint) deferrable(call string, op *Op) error {
	if op == nil {
		return e.invalid(call, "there is no operation")
	}
	why := op.wrong()
	switch {
	case why != "":
	case kinds[op.Kind].inject:
		why = "an injected operation cannot be deferred"
	case op.Flags&(Peek|Claim|Discard|MultiReceive|WithCompletion) != 0:
		why = "a deferred operation cannot peek, claim, discard, receive again and again, or complete in a queue"
	default:
		return nil
	}
	return e.invalid(call, why)
}

// fill copies the operation to where C reads it, and pins its memory, unless a region of
// it is being closed.
func (f *Deferred) fill(op *Op) descriptorState {
	c := f.work.Op()
	c.Kind = kinds[op.Kind].code
	c.Peer, c.Tag, c.Ignore = uint64(op.Peer), op.Tag, op.Ignore
	c.Buf, c.Len = address(op.Buf), uint64(len(op.Buf))
	state := max(f.domain.descriptors.translate(&c.Descriptor, op.ownDescriptor()), f.domain.extend(op, c, f.work.Extra()))
	if state != descriptorOpen {
		return state
	}
	// The work's own copy is what C looks at.
	c.Extra = nil
	buffers := append([][]byte{op.Buf}, op.Vector...)
	if a := op.Atomic; a != nil {
		buffers = append(buffers, a.Result, a.Compare)
	}
	for _, b := range buffers {
		if len(b) > 0 {
			f.pinner.Pin(&b[0])
		}
	}
	return descriptorOpen
}

// DeferAdd adds n to the counter when another has reached a threshold. Counters
// that change each other in a circle are ErrInvalid, as is what the provider's do not
// count to, and one that counts deferred operations is ErrBusy.
//
// Implements: int fi_control(...)
func (c *Counter) DeferAdd(n uint64, when Trigger) (*Deferred, error) {
	return c.deferChange(n, when, func(w cgo.Work) cgo.Code {
		return w.QueueAdd(c.domain.raw, when.Counter.raw, when.Threshold, c.raw, n)
	})
}

// DeferSet sets the counter to n when another has reached a threshold, like
// DeferAdd.
//
// Implements: int fi_control(...)
func (c *Counter) DeferSet(n uint64, when Trigger) (*Deferred, error) {
	return c.deferChange(n, when, func(w cgo.Work) cgo.Code {
		return w.QueueSet(c.domain.raw, when.Counter.raw, when.Threshold, c.raw, n)
	})
}

func (c *Counter) deferChange(n uint64, when Trigger, queue func(cgo.Work) cgo.Code) (*Deferred, error) {
	const call = "FI_QUEUE_WORK"
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	d := c.domain
	if err := when.wrong(call, d, d.info); err != nil {
		return nil, err
	}
	if detail := beyondCounting(d.provider, n); detail != "" {
		return nil, d.invalid(call, detail)
	}
	used := []*handle{&d.handle, &when.Counter.handle}
	if err := enterAll(used); err != nil {
		return nil, err
	}
	defer leaveAll(used)
	d.deferred.Lock()
	defer d.deferred.Unlock()
	switch {
	case c.deferred.open > 0:
		return nil, c.busy(call, "it counts deferred operations")
	// The provider would wait for itself.
	case c.reaches(when.Counter, make(map[*Counter]bool)):
		return nil, c.misused(call, "the counters would change each other in a circle")
	}
	if err := when.Counter.join(call, c, nil); err != nil {
		return nil, err
	}
	// What is due at once is done within the call, and may begin other work.
	if e := c.group().endpoint; e != nil {
		if err := e.enter(); err != nil {
			return nil, err
		}
		defer e.leave()
	}
	f := &Deferred{domain: d, when: when, target: c}
	var ok bool
	if f.work, ok = cgo.NewWork(); !ok {
		return nil, fail(call, d.provider, int(syscall.ENOMEM))
	}
	if code := queue(f.work); code != 0 {
		f.work.Free()
		return nil, fail(call, d.provider, int(code))
	}
	u := &when.Counter.deferred
	if u.targets == nil {
		u.targets = make(map[*Counter]int)
	}
	u.targets[c]++
	f.flushes = d.deferred.flushes
	f.open("deferred operation", d.provider, &d.handle, &when.Counter.handle, &c.handle)
	return f, nil
}

// FlushDeferred takes back all operations of the domain that have not begun
// (FI_FLUSH_WORK). Many providers, sockets too, cannot: ErrNotSupported.
//
// Implements: int fi_control(...)
func (d *Domain) FlushDeferred() error {
	const call = "FI_FLUSH_WORK"
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if d.info.a.Caps&cgo.CapTrigger == 0 {
		return notTriggering(call, d.provider)
	}
	d.deferred.Lock()
	defer d.deferred.Unlock()
	if code := d.raw.FlushWork(); code != 0 {
		return fail(call, d.provider, int(code))
	}
	d.deferred.flushes++
	return nil
}

// enterAll enters handles one after the other; leaveAll leaves them.
func enterAll(handles []*handle) error {
	for i, h := range handles {
		if err := h.enter(); err != nil {
			leaveAll(handles[:i])
			return err
		}
	}
	return nil
}

func leaveAll(handles []*handle) {
	for _, h := range handles {
		h.leave()
	}
}
