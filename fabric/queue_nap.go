package fabric

import (
	"strings"
	"time"

	"github.com/weft-go/weft/cgo"
)

// A queue of ofi_rxm goes on looking at what an endpoint waited for when that is closed:
// fi_cq_sread and fi_trywait then end the process. Such a queue is read again and again.

// outlives notes that an endpoint of the queue is closed.
func (q *CompletionQueue) outlives() {
	if strings.HasSuffix(q.provider, ";ofi_rxm") {
		q.naps.Store(true)
	}
}

// nap takes a turn that waits, without libfabric.
func (q *CompletionQueue) nap(t *cgo.Turn, posts, room, waitMS int) (reaped int, code cgo.Code) {
	end := time.Now().Add(time.Duration(waitMS) * time.Millisecond)
	reaped, code = t.Take(posts, room, 0, 0)
	for reaped == 0 && code == 0 && !q.signaled.Swap(false) && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
		reaped, code = t.Take(0, room, 0, 0)
	}
	return reaped, code
}

// signal ends a wait.
func (q *CompletionQueue) signal() cgo.Code {
	if q.naps.Load() {
		q.signaled.Store(true)
		return 0
	}
	return q.raw.Signal()
}
