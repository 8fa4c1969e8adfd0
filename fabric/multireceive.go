package fabric

import (
	"syscall"

	"github.com/weft-go/weft/cgo"
)

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

// several is what an endpoint, with its aliases, has for its buffers for several messages.
type several struct {
	// ones are receives in flight for one message. What is left of a buffer would be behind them.
	ones int
	// least is OptionMinMultiReceive.
	least uint64
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
	q.unposted = append(q.unposted, index)
	return true
}

// postAgain posts what is left of buffers. The caller has put away what it read, which is before what
// may come of this. A buffer that is refused is given back without a message.
func (q *CompletionQueue) postAgain() {
	for _, index := range q.unposted {
		s := &q.table[index]
		e := s.endpoint
		c, x := &e.turn.Ops[0], &e.turn.Extras[0]
		*c = cgo.Op{
			Kind: kinds[OpReceive].code, Peer: s.peer, Buf: s.base + uintptr(s.taken), Len: uint64(s.room),
			Slot: q.slots.Address(int(index)), Token: uint64(s.generation)<<32 | uint64(index), Extra: x,
		}
		x.Flags, x.Data, x.Vectors, x.Remotes = uint64(s.flags&^MultiReceive), 0, 0, 0
		if e.domain.descriptors.translate(&c.Descriptor, s.descriptor) != descriptorOpen {
			q.giveBack(index, 0)
			continue
		}
		s.room = e.addSpill(c, x)
		if e.fetching.on && !e.fetching.describe(e, &anyReceive, c, x, s) {
			q.giveBack(index, 0)
			continue
		}
		// With nothing to read, it posts and does no more.
		e.turn.Take(1, 0, 0, 0)
		switch {
		case c.Result > 0:
			e.lose(index, int(c.Result))
		case c.Result < 0:
			q.giveBack(index, Errno(-c.Result))
		}
	}
	q.unposted = q.unposted[:0]
}

// anyReceive stands for the operation that a buffer was posted with.
var anyReceive = Op{Kind: OpReceive}

// giveBack ends a buffer that libfabric does not have.
func (q *CompletionQueue) giveBack(index uint32, why Errno) {
	s := &q.table[index]
	out := Completion{Context: s.context, Kind: s.kind, Source: AddressAny, Released: true}
	if why != 0 && why != Errno(syscall.EAGAIN) {
		out.Err = &Error{Op: s.kind.String(), Provider: q.provider, Errno: why, gone: saysGone(q.provider, why)}
	}
	q.kept = append(q.kept, out)
	q.give(index)
}
