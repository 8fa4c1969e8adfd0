package fabric

import (
	"strconv"
	"syscall"
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// Counter is the counter of the operation's end: the one given to Defer, or its
// own. It is nil for a change of a counter.
func (f *Deferred) Counter() *Counter { return f.done }

// Begun says whether the moment has come: the counter has reached the threshold.
func (f *Deferred) Begun() (bool, error) {
	if err := f.enter(); err != nil {
		return false, err
	}
	defer f.leave()
	return f.begun(), nil
}

func (f *Deferred) begun() bool { return f.when.Counter.raw.Read() >= f.when.Threshold }

// Complete says whether the operation has ended, well or not, as far as that is
// known: if one counter counts the ends of several, when all of them have ended.
// What went wrong is only counted.
func (f *Deferred) Complete() (bool, error) {
	if err := f.enter(); err != nil {
		return false, err
	}
	defer f.leave()
	f.domain.deferred.Lock()
	defer f.domain.deferred.Unlock()
	return f.complete(), nil
}

func (f *Deferred) complete() bool {
	if f.cancelled {
		return true
	}
	if f.done == nil {
		return f.changed()
	}
	u := &f.done.deferred
	return f.done.raw.Read()+f.done.raw.ReadErrors()-u.base >= u.queued
}

// changed says whether the change of a counter has been made.
func (f *Deferred) changed() bool {
	if !f.begun() {
		return false
	}
	e := f.when.Counter.group().endpoint
	if e == nil || e.enter() == nil {
		// The value may be there before the provider has seen to what waits for
		// it. An update that changes nothing comes after that, or does it.
		f.when.Counter.raw.Add(0)
		if e != nil {
			e.leave()
		}
	}
	return true
}

// Cancel takes back an operation that has not begun (FI_CANCEL_WORK), so that it
// can be closed. Many providers, sockets too, cannot: ErrNotSupported.
//
// Implements: int fi_control(...)
func (f *Deferred) Cancel() error {
	if err := f.enter(); err != nil {
		return err
	}
	defer f.leave()
	f.domain.deferred.Lock()
	defer f.domain.deferred.Unlock()
	if f.cancelled {
		return nil
	}
	code := f.work.Cancel(f.domain.raw)
	f.cancelled = code == 0
	return fail("FI_CANCEL_WORK", f.provider, int(code))
}

// Close gives up what the operation holds. While the provider may still use it,
// it tries to cancel; where that is impossible, ErrBusy says what to do: let the
// counter reach the threshold, wait for the operation, or close its endpoint,
// which ends everything on it. It must be closed before its counters.
func (f *Deferred) Close() error {
	err := f.close(func() error {
		f.domain.deferred.Lock()
		why, ended := f.held()
		if why != "" {
			f.domain.deferred.Unlock()
			return &Error{Op: "close of deferred operation", Provider: f.provider, Errno: Errno(syscall.EBUSY), Detail: why}
		}
		if f.done != nil {
			u := &f.done.deferred
			if u.open--; u.open == 0 {
				u.queued = 0
			}
		} else {
			u := f.when.Counter.deferred.targets
			if u[f.target]--; u[f.target] == 0 {
				delete(u, f.target)
			}
		}
		if !ended {
			f.domain.deferred.left = append(f.domain.deferred.left, f.work)
		} else {
			f.work.Free()
		}
		f.domain.deferred.Unlock()
		f.domain.inUse.removeDeferred(f)
		f.pinner.Unpin()
		return nil
	})
	if err == nil && f.ownsDone {
		err = f.done.Close()
	}
	return err
}

// held says why the provider may still use the operation, or "". ended says that
// it is known to leave no trace: otherwise an error with the operation's context
// may stand in a completion queue.
func (f *Deferred) held() (why string, ended bool) {
	if f.complete() {
		return "", true
	}
	e := f.endpoint
	if e == nil {
		e = f.when.Counter.group().endpoint
	}
	if e != nil {
		if e.enter() != nil {
			// Closed, and with it all that could begin the operation.
			return "", false
		}
		defer e.leave()
	}
	if f.work.Cancel(f.domain.raw) == 0 {
		return "", true
	}
	threshold := strconv.FormatUint(f.when.Threshold, 10)
	if !f.begun() {
		if f.flushes != f.domain.deferred.flushes {
			return "", false
		}
		return "the provider cannot cancel it: let its counter reach " + threshold + ", or close its endpoint", false
	}
	// sockets takes a receive back at once.
	if f.receive && f.work.CancelStarted(f.endpoint.raw) == 0 && core(f.provider) == "sockets" {
		return "", false
	}
	return "it has begun and is not complete: wait for it, or close its endpoint", false
}

// PostWhen posts an operation that begins when a counter has reached a
// threshold (FI_TRIGGER), and that completes in the endpoint's queue like any
// other; see Turn for its Result and its buffers. It is for the operations that
// can be deferred, and what Defer says about providers and counters holds here
// too. An error is in the operation too, which has Failed then, unless it is about the
// queue. It does not allocate, but for errors.
func (e *Endpoint) PostWhen(op *Op, when Trigger) (err error) {
	const call = "FI_TRIGGER"
	tried := false
	defer func() {
		if err != nil && !tried && op != nil {
			op.Result, op.Token, op.Err = Failed, 0, err
		}
	}()
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := when.wrong(call, e.domain, e.Info()); err != nil {
		return err
	}
	if err := e.deferrable(call, op); err != nil {
		return err
	}
	if err := when.Counter.enter(); err != nil {
		return err
	}
	defer when.Counter.leave()
	t, q := e.turn, e.queue(op.Kind)
	if t == nil {
		return e.notEnabled(call)
	}
	if err := e.whole(call); err != nil {
		return err
	}
	e.domain.deferred.Lock()
	err = when.Counter.join(call, when.Counter, e)
	e.domain.deferred.Unlock()
	if err != nil {
		return err
	}
	tried = true
	c := &t.Ops[0]
	flags := op.Flags
	e.ownFlags = OpFlags(cgo.FlagTrigger)
	op.Flags |= e.ownFlags
	defer func() { op.Flags, e.ownFlags = flags, 0 }()
	if !e.stage(op, c, &t.Extras[0]) {
		op.Result, op.Err = Refused, nil
		return nil
	}
	if q == nil {
		// The other one carries what is not tried.
		q = e.queues()[0]
	}
	if c.Slot != 0 {
		q.slots.Trigger(int(uint32(c.Token)), when.Counter.raw, when.Threshold)
	}
	_, err = q.reap(t, e, unsafe.Slice(op, 1), nil, 0, 0)
	if _, s := q.lookup(uint64(op.Token) &^ receiveToken); op.Result == Posted && s != nil {
		s.trigger = when.Counter
		when.Counter.awaited.Add(1)
	}
	return err
}
