package comm

import (
	"github.com/weft-go/weft/efa"
)

// arrival is a message that has come before its receive.
type arrival struct {
	next   *arrival // in the list of those that are free
	peer   *peer
	header header
	data   []byte // the message, if it is here
	length int
	local  *operation // of this rank, that has the message still
	cost   int64      // of the limit
}

// arrivals counts the memory of messages that wait, and keeps some of it.
type arrivals struct {
	limit, used int64
	free        *arrival
	spare       int  // the number of those
	full        bool // peers are held back
}

// overhead is what a message counts beside its length: what it takes here and in the
// matcher (TestUnexpectedIsCounted).
const overhead = 384

func (l *arrivals) take() *arrival {
	a := l.free
	if a == nil {
		return &arrival{}
	}
	l.free = a.next
	l.spare--
	a.next = nil
	return a
}

func (l *arrivals) give(a *arrival) {
	if l.spare == mostSpare {
		return
	}
	l.spare++
	data := a.data[:0]
	if cap(data) > mostKept {
		data = nil
	}
	*a = arrival{next: l.free, data: data}
	l.free = a
}

// mostSpare is how many arrivals are kept for later messages, and mostKept the longest
// memory that one keeps.
const (
	mostSpare = 1024
	mostKept  = 16 << 10
)

// arrived fills in a message that waits. data is copied; nil means that it is
// elsewhere.
func (a *arrival) arrived(from *peer, h header, data []byte) {
	a.peer, a.header, a.length = from, h, len(data)
	a.data = append(a.data[:0], data...)
}

// keep counts a message that is with the matcher now, and tells who looks for it.
func (e *engine) keep(p efa.Progress, a *arrival) {
	a.cost = int64(len(a.data)) + overhead
	e.arrivals.used += a.cost
	e.tellProbes(p)
}

// taken ends the wait of a message, and lets those go on that were held back.
func (e *engine) taken(p efa.Progress, a *arrival) {
	e.arrivals.used -= a.cost
	e.arrivals.give(a)
	e.letGo(p)
}

// letGo lets those go on that were held back, if there is room again.
func (e *engine) letGo(p efa.Progress) {
	// At once: what is held back may be what this rank waits for.
	if e.arrivals.full && e.arrivals.used < e.arrivals.limit {
		e.arrivals.full = false
		p.Later(e.resume)
	}
}

// resume has those go on that were held back.
func (e *engine) resume(p efa.Progress) {
	for _, peer := range e.peers {
		if peer.held && !e.arrivals.full {
			peer.held = false
			p.Resume(peer.conn)
		}
	}
	if e.provider != nil {
		e.provider.steer(p)
	}
}
