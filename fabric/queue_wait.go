package fabric

import (
	"strings"
	"time"

	"github.com/weft-go/weft/cgo"
)

const (
	// A queue of ofi_rxm goes on looking at what an endpoint waited for when that is closed:
	// fi_cq_sread and fi_trywait then end the process. Such a queue is read again and again,
	// with a rest in between.
	readRest = time.Millisecond
	// fi_cq_sread of tcp looks whether there was a signal, and then forgets those that have
	// come since, before it begins to wait. So a wait is in parts.
	longestRead = 100 * time.Millisecond
)

// outlives notes that an endpoint of the queue is closed.
func (q *CompletionQueue) outlives() {
	if strings.HasSuffix(q.provider, ";ofi_rxm") {
		q.naps.Store(true)
	}
}

// wait takes a turn that waits for so many milliseconds, or until there is a signal. Without
// room there is nothing to wait for.
func (q *CompletionQueue) wait(t *cgo.Turn, posts, room, spins, waitMS int) (reaped int, code cgo.Code) {
	end := time.Now().Add(time.Duration(waitMS) * time.Millisecond)
	for {
		naps, part := q.naps.Load(), 0
		if !naps {
			// Less than a millisecond is left of a wait, and not nothing.
			left := min(time.Until(end), longestRead)
			part = int((max(left, 0) + time.Millisecond - 1) / time.Millisecond)
		}
		reaped, code = t.Take(posts, room, spins, part)
		for i := range posts {
			if t.Ops[i].Result > 0 {
				return reaped, code // it has ended, and the queue says nothing of it
			}
		}
		posts, spins = 0, 0
		if reaped > 0 || code != 0 || room == 0 || q.signaled.Swap(false) || !time.Now().Before(end) {
			return reaped, code
		}
		if naps {
			time.Sleep(readRest)
		}
	}
}

// signal ends a wait.
func (q *CompletionQueue) signal() cgo.Code {
	q.signaled.Store(true)
	if q.naps.Load() {
		return 0
	}
	return q.raw.Signal()
}
