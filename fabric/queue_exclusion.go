package fabric

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"time"
)

// excludeFrom keeps everybody out of queues, which may be nil or there twice, until
// readmit is called: whoever reads a queue looks at its endpoints, and fi_ep_bind,
// fi_enable and fi_close change what there is to be seen.
func excludeFrom(queues ...*CompletionQueue) (readmit func(), err error) {
	queues = slices.DeleteFunc(queues, func(q *CompletionQueue) bool { return q == nil })
	// Others have the same queues in the same order.
	slices.SortFunc(queues, func(a, b *CompletionQueue) int { return cmp.Compare(a.number, b.number) })
	queues = slices.Compact(queues)
	for i, q := range queues {
		if !q.exclude() {
			readmitTo(queues[:i])
			return nil, q.closedError()
		}
	}
	return func() { readmitTo(queues) }, nil
}

func readmitTo(queues []*CompletionQueue) {
	for _, q := range queues {
		q.readmit()
	}
}

// excludeUsers keeps everybody out of a queue and of the endpoints that have it, until
// readmit is called: then nobody changes its slots.
func (q *CompletionQueue) excludeUsers() (readmit func()) {
	return excludeAll(func() []*handle { return []*handle{&q.handle} })
}

// excludeTurns keeps everybody out of what moves the operations of a domain on.
func (d *Domain) excludeTurns() (readmit func()) {
	return excludeAll(func() (moving []*handle) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for c := range d.children {
			if c.kind == kindQueue || c.kind == kindCounter {
				moving = append(moving, c)
			}
		}
		return moving
	})
}

// excludeAll keeps everybody out of handles, and what take adds. Others keep people out of queues
// while they are in an endpoint, or wait for those in an endpoint while they have its
// queues. So whoever cannot have all at once lets go of what it has, and tries again.
func excludeAll(handles func() []*handle) (readmit func()) {
	var all, waited exclusion
	defer func() { waited.release((*handle).forgetCloser) }()
	for looks := 0; ; looks++ {
		var busy *handle
		for _, h := range handles() {
			if busy = all.take(h); busy != nil {
				break
			}
		}
		if busy == nil {
			return func() { all.release((*handle).readmit) }
		}
		all.release((*handle).readmit)
		if !slices.Contains(waited, busy) {
			busy.closers.Add(1)
			waited = append(waited, busy)
		}
		busy.endCalls(looks)
	}
}

// exclusion is a list of handles from which callers are kept out.
type exclusion []*handle

// take adds a handle and those within that have slots of its queue. It returns one that
// somebody uses, if there is one.
func (x *exclusion) take(h *handle) (busy *handle) {
	for !h.users.CompareAndSwap(0, closingBit) {
		n := h.users.Load()
		// An endpoint may be within two queues.
		if n&closedBit != 0 || n&closingBit != 0 && slices.Contains(*x, h) {
			return nil
		}
		if n != 0 {
			return h
		}
	}
	*x = append(*x, h)
	h.mu.Lock()
	children := slices.Collect(maps.Keys(h.children))
	h.mu.Unlock()
	for _, c := range children {
		// An endpoint has other things that are open, such as the region that is closed.
		if h.kind != kindQueue && c.kind != kindAlias {
			continue
		}
		if busy := x.take(c); busy != nil {
			return busy
		}
	}
	return nil
}

func (x *exclusion) release(end func(*handle)) {
	for _, h := range *x {
		end(h)
	}
	*x = nil
}

func (h *handle) forgetCloser() { h.closers.Add(-1) }

// stopAll keeps everybody out of handles until readmit is called, some of which may be closed:
// whoever comes waits, and whoever is in is waited for, before the next one is looked at. So it
// comes to its end however busy they are, and whoever is in one of them must not need one before
// it. ok is false if another keeps people out of one, which may take long.
func stopAll(handles []*handle) (readmit func(), ok bool) {
	var stopped exclusion
	readmit = func() { stopped.release((*handle).readmit) }
	for _, h := range handles {
		switch h.stop() {
		case stopEnded:
			continue
		case stopElsewhere:
			readmit()
			return nil, false
		}
		stopped = append(stopped, h)
		h.drain()
	}
	return readmit, true
}

// What stop has found.
const (
	stopDone = iota
	stopEnded
	stopElsewhere
)

// stop keeps further callers out until readmit is called.
func (h *handle) stop() int {
	for {
		n := h.users.Load()
		switch {
		case n&closedBit != 0:
			return stopEnded
		case n&closingBit != 0:
			return stopElsewhere
		case h.users.CompareAndSwap(n, n+closingBit):
			return stopDone
		}
	}
}

// drain lets the calls come to their end that were under way when the handle was stopped. Those
// that wait to come in are counted for a moment, again and again.
func (h *handle) drain() {
	h.closers.Add(1)
	defer h.closers.Add(-1)
	for looks := 0; h.users.Load() != closingBit; looks++ {
		if looks < shortCalls {
			runtime.Gosched()
			continue
		}
		h.mu.Lock()
		if h.wake != nil {
			h.wake()
		}
		h.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}
