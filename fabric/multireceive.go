package fabric

import "github.com/weft-go/weft/cgo"

// Buffers for several messages go wrong in libfabric, where one does not fit. shm, and ofi_rxm and
// efa of some version after 1.17, take the length of each from what is left, also that of
// one which is longer: what is left is nearly 2^64 then, and whatever comes is written behind the
// buffer, before anybody can hear of it. ofi_rxm of 1.17 takes nothing more by that connection, or goes
// on with a part of the buffer and says so to nobody. sockets leaves the buffer posted: it has no room,
// and swallows all that comes, though it was given back. So such a buffer is a receive of one message in
// libfabric, with the buffer more for what does not fit, and what a message has left is posted again
// when it was read.

// usualLeast is what OptionMinMultiReceive is if nobody sets it, as in most of libfabric.
const usualLeast = 64

// singly says of endpoints that libfabric gets their receives for one message each.
func singly(i *Info) bool {
	switch core(i.Provider()) {
	case "shm", "sockets", "efa":
		return true
	}
	return fetchesOverConnections(i.Provider())
}

// several is what an endpoint, with its aliases, has for its buffers for several messages, and of
// receives.
type several struct {
	// ones are receives in flight for one message. What is left of a buffer would be behind them.
	ones int
	// least is OptionMinMultiReceive.
	least uint64
	// inFlight are untagged receives from anybody, and from one peer, if they must not be mixed.
	inFlight [2]int
}

func newSeveral() *several { return &several{least: usualLeast} }

// hasLeast says whether an option is several.least, of which libfabric hears nothing.
func (e *Endpoint) hasLeast(o cgo.Option) bool {
	return o == cgo.OptMinMultiReceive && singly(e.Info())
}

// counts says whether an operation is one of several.ones.
func (e *Endpoint) counts(op *Op) bool {
	return op.Kind == OpReceive && e.singly && op.Flags&(MultiReceive|Peek|Claim|Discard) == 0
}

// goesOn says whether what a message of length bytes leaves of a buffer takes another, and has it posted
// again if so.
func (q *CompletionQueue) goesOn(index uint32, length uint64) bool {
	s := &q.table[index]
	e := s.endpoint
	if s.kind != OpReceive || e.spill == nil || length > uint64(s.room) || e.several.ones > 0 || e.closing() {
		return false
	}
	left := uint64(s.room) - length
	if left == 0 || left < e.several.least {
		return false
	}
	s.taken += int(length)
	s.room = int(left)
	q.unposted = append(q.unposted, s.token(index))
	return true
}
