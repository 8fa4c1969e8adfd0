package fabric

import (
	"cmp"
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
