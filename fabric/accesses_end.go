package fabric

import (
	"time"

	"github.com/weft-go/weft/cgo"
)

// finishAccesses waits until an endpoint of shm, or of efa, which has shm within a host, that is to be
// closed has what it reads and writes of peers' memory behind it, if they answer. Where a process may
// not look into another's memory, and in 2.1 within a process, what is long goes in pieces, in memory of
// the peer that is given back at the end alone: of four endpoints that are gone by then it has none left,
// and refuses everybody.
func (e *Endpoint) finishAccesses() {
	if !looksAtNeighbours(e.provider) || e.turn == nil || e.severed {
		return
	}
	end := time.Now().Add(patienceWithPeers)
	for left := e.accesses(); left > 0 && time.Now().Before(end); time.Sleep(lookAgain) {
		e.gather(true)
		if n := e.accesses(); n < left {
			left, end = n, time.Now().Add(patienceWithPeers)
		}
	}
}

// accesses counts reads and writes in flight.
func (e *Endpoint) accesses() (n int) {
	if e.send == nil {
		return 0
	}
	for i := range e.send.table {
		s := &e.send.table[i]
		if s.busy && s.endpoint == e && (s.kind == OpRead || s.kind == OpWrite) && s.flags&OpFlags(cgo.FlagTrigger) == 0 {
			n++
		}
	}
	return n
}
