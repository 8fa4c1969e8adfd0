package fabric

import (
	"runtime"
	"slices"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// losesDirected says of providers that fi_cancel of an untagged receive from one peer ends the process:
// those that have their list of receives in common with each other, in libfabric after 1.17. Nor do they
// take what comes for such receives while others take anybody's: they follow what is no receive.
func losesDirected(provider string) bool {
	if v := LibraryVersion(); v.Major < 2 && v.Minor <= 17 {
		return false
	}
	return core(provider) == "shm" || core(provider) == "efa" || fetchesOverConnections(provider)
}

// isDirected says of a receive in flight that it is such a one. What names a peer at an endpoint that takes
// messages of anybody is none.
func (e *Endpoint) isDirected(s *slot) bool {
	return s.kind == OpReceive && s.peer != uint64(AddressAny) && losesDirected(e.provider) && e.directs(s.kind)
}

// Which receives a slot counts for in several.inFlight.
const (
	ofAnybody = iota + 1
	ofOnePeer
)

// mixable is which of those a receive is, or 0.
func (e *Endpoint) mixable(op *Op) uint8 {
	switch {
	case !e.unmixed || op.Kind != OpReceive:
		return 0
	case op.Peer == AddressAny:
		return ofAnybody
	}
	return ofOnePeer
}

// mixes says whether an operation is a receive that must not be there beside those in flight.
func (e *Endpoint) mixes(op *Op) bool {
	which := e.mixable(op)
	return which != 0 && e.several.inFlight[ofOnePeer-which] > 0
}

// takeBack takes the receive with the index back that is directed, or if it is -1 all from the peer. gone is
// how many have ended.
func (q *CompletionQueue) takeBack(e *Endpoint, index int, peer uint64) (gone int, code cgo.Code) {
	most := 0
	for i := range q.table {
		if o := &q.table[i]; o.busy && o.kind == OpReceive && o.peer == peer {
			most++
		}
	}
	raw := e.raw
	if e.connection.of != nil {
		raw = e.connection.of.raw
	}
	q.refusals = slices.Grow(q.refusals[:0], most)[:most]
	gone, refused, code := q.slots.CancelDirected(raw, index, peer, q.refusals)
	for _, r := range q.refusals[:refused] {
		q.giveBack(uint32(q.slots.Refused(r)), Errno(r.Error))
	}
	return gone, code
}

// cancelDirected is Cancel of such a receive.
func (q *CompletionQueue) cancelDirected(e *Endpoint, index uint32) error {
	const op = "cancel of a receive from a peer"
	s := &q.table[index]
	gone, code := q.takeBack(e, int(index), s.peer)
	switch {
	case gone > 0:
		q.giveBack(index, Errno(syscall.ECANCELED))
	case code == cgo.NoSystem:
		return &Error{
			Op: op, Provider: e.provider, Errno: Errno(syscall.EOPNOTSUPP),
			Detail: "fi_cancel of libfabric " + LibraryVersion().String() + " would end the process",
		}
	case code != 0:
		return fail(op, e.provider, int(code))
	}
	return nil
}

// endDirected ends receives of an endpoint that is being closed that name a peer. Where they cannot be
// ended, their memory is kept.
func (e *Endpoint) endDirected() {
	q := e.receive
	if q == nil {
		return
	}
	codes := make(map[uint64]cgo.Code)
	for i := range q.table {
		s := &q.table[i]
		if !s.busy || s.endpoint != e || !kinds[s.kind].receive || s.peer == uint64(AddressAny) {
			continue
		}
		if !e.isDirected(s) {
			q.slots.Cancel(e.raw, i)
			continue
		}
		code, done := codes[s.peer]
		if !done {
			_, code = q.takeBack(e, -1, s.peer)
			codes[s.peer] = code
		}
		if code != 0 {
			e.pinForGood(s)
		}
	}
}

// pinForGood keeps the memory of an operation in place until the endpoint is closed inside.
func (e *Endpoint) pinForGood(s *slot) {
	e.neighbour.pinned = append(e.neighbour.pinned, s.pinners[:]...)
	s.pinners, s.pinned = [len(s.pinners)]runtime.Pinner{}, 0
}
