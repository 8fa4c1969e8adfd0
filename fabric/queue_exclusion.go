package fabric

import (
	"cmp"
	"maps"
	"slices"
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
// readmit is called: then nobody changes its slots. Others keep people out of queues
// while they are in an endpoint, or wait for those in an endpoint while they have its
// queues. So whoever cannot have all at once lets go of what it has, and tries again.
func (q *CompletionQueue) excludeUsers() (readmit func()) { return excludeFromAll(&q.handle) }

func excludeFromAll(handles ...*handle) (readmit func()) {
	var all, waited exclusion
	defer func() { waited.release((*handle).forgetCloser) }()
	for looks := 0; ; looks++ {
		var busy *handle
		for _, h := range handles {
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
		if n&closedBit != 0 {
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
