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
	return q.domain.exclude(func() []*handle { return append(q.usedBy(), &q.handle) })
}

// excludeTurns keeps everybody out of what moves the operations of a domain on.
func (d *Domain) excludeTurns() (readmit func()) {
	return d.exclude(func() (moving []*handle) {
		var queues, counters []*handle
		for _, c := range d.handle.list() {
			switch c.kind {
			case kindQueue:
				queues = append(queues, c)
			case kindCounter:
				counters = append(counters, c)
			}
		}
		found := make(map[*handle]bool)
		for _, q := range queues {
			for _, h := range q.usedBy() {
				if !found[h] {
					found[h] = true
					moving = append(moving, h)
				}
			}
		}
		return slices.Concat(moving, queues, counters)
	})
}

// usedBy are the handles within a queue that have slots of it.
func (h *handle) usedBy() (all []*handle) {
	for _, c := range h.list() {
		all = append(all, c)
		// An endpoint has other things that are open, such as the region that is closed.
		for _, alias := range c.list() {
			if alias.kind == kindAlias {
				all = append(all, alias)
			}
		}
	}
	return all
}

// list are those within.
func (h *handle) list() []*handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.children))
}

// exclude keeps everybody out of handles: endpoints, and behind them their queues, and counters, for
// whoever is in one of them may wait for one that is behind it. Others keep people out of queues
// while they wait for those in an endpoint: so whoever cannot have all lets go of what it has, and tries
// again.
func (d *Domain) exclude(handles func() []*handle) (readmit func()) {
	d.excluding.Lock()
	defer d.excluding.Unlock()
	for {
		all := handles()
		stopped := make(map[*handle]bool, len(all))
		for _, h := range all {
			h.wanted.Add(1)
			stopped[h] = true
		}
		readmit, ok := stopAll(all)
		for _, h := range all {
			h.wanted.Add(-1)
		}
		// Nobody gets into a queue any more, but may have before.
		isNew := func(h *handle) bool { return !stopped[h] }
		switch {
		case ok && !slices.ContainsFunc(handles(), isNew):
			return readmit
		case ok:
			readmit()
		}
		runtime.Gosched()
	}
}

// shortWait is how long whoever needs more than one handle waits for another that does.
const shortWait = 20 * time.Millisecond

// giveWay is for whoever is about to keep people out of a queue, and is in nothing: those who want more
// than that would never find it free among some who open and close endpoints.
func (h *handle) giveWay() {
	for begun := time.Now(); h.wanted.Load() > 0 && time.Since(begun) < shortWait; {
		time.Sleep(50 * time.Microsecond)
	}
}

// exclusion is a list of handles from which callers are kept out.
type exclusion []*handle

func (x *exclusion) release(end func(*handle)) {
	for _, h := range *x {
		end(h)
	}
	*x = nil
}

// stopAll keeps everybody out of handles until readmit is called, some of which may be closed:
// whoever comes waits, and whoever is in is waited for, before the next one is looked at. So it
// comes to its end however busy they are, and whoever is in one of them must not need one before
// it. ok is false if another keeps people out of one for long.
func stopAll(handles []*handle) (readmit func(), ok bool) {
	var stopped exclusion
	readmit = func() { stopped.release((*handle).readmit) }
	for _, h := range handles {
		how := h.stop()
		for begun := time.Now(); how == stopElsewhere && time.Since(begun) < shortWait; how = h.stop() {
			runtime.Gosched()
		}
		switch how {
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
