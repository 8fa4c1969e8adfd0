package fabric

import (
	"runtime"
	"syscall"
)

// slot is weft's half of an operation in flight; libfabric's is in cgo.Slots.
type slot struct {
	context    uint64
	endpoint   *Endpoint
	generation uint32
	kind       OpKind
	busy       bool
	trigger    *Counter // that an operation of PostWhen has waited for
	// What a tagged receive is for, if the queue mismatches or it is drained.
	tag, ignore uint64
	claimed     bool  // peeked at and claimed, waiting for the receive
	one         bool  // counted in several.ones
	mixable     uint8 // counted in several.inFlight, as that
	drained     bool  // the message is discarded by being received
	pinned      uint8 // buffers
	flags       OpFlags
	pinners     [2]runtime.Pinner // of pinnerRoom each
	room        int               // of a receive: what is longer does not fit
	// Of a multi-receive: where its buffer is, how much of that messages have, and whose they are to be.
	base  uintptr
	taken int
	peer  uint64
	// fetched are the registrations of a message that may be fetched.
	fetched fetched
	// descriptor is that of its memory, or severalDescriptors.
	descriptor Descriptor
}

// pinnerRoom is how many pointers a runtime.Pinner holds in itself. From the
// next one on it allocates, each time anew. An operation has up to ten: a vector
// of eight, and what it compares with and where its result goes.
const pinnerRoom = 5

// receiveToken marks tokens of the receive queue of an endpoint with two; no
// generation has this bit.
const receiveToken = 1 << 63

// firstGeneration is such that no operation has the zero Token.
const firstGeneration = 1

// take gives an operation a slot; the caller has seen that one is free.
func (q *CompletionQueue) take(e *Endpoint, op *Op) (uint32, Token) {
	index := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	return index, q.occupy(index, e, op)
}

// claim gives a receive the slot of the message that it claims, if it is there.
func (q *CompletionQueue) claim(e *Endpoint, op *Op) (uint32, bool) {
	index, s := q.lookup(uint64(op.Claimed))
	if s == nil || !s.claimed || s.endpoint != e {
		return 0, false
	}
	q.occupy(index, e, op)
	return index, true
}

// unclaim takes back the claim of a receive that was refused.
func (q *CompletionQueue) unclaim(index uint32) {
	s := &q.table[index]
	s.unpin()
	s.claimed = true
}

func (q *CompletionQueue) occupy(index uint32, e *Endpoint, op *Op) Token {
	s := &q.table[index]
	s.context, s.kind, s.flags, s.endpoint, s.busy, s.claimed, s.drained = op.Context, op.Kind, op.Flags, e, true, false, false
	s.descriptor = op.Descriptor
	if q.mismatches {
		s.tag, s.ignore = op.Tag, op.Ignore
	}
	if len(op.Descriptors) > 0 || op.Atomic != nil {
		q.describe(index, op)
	}
	if op.Flags&MultiReceive != 0 {
		s.base, s.taken = address(op.Buf), 0
	}
	if e.counts(op) {
		s.one = true
		e.several.ones++
	}
	if s.mixable = e.mixable(op); s.mixable != 0 {
		e.several.inFlight[s.mixable-1]++
	}
	if !op.Fixed {
		s.pin(op)
	}
	return Token(s.token(index))
}

// token names the operation that has the slot.
func (s *slot) token(index uint32) uint64 { return uint64(s.generation)<<32 | uint64(index) }

// pin keeps the memory of an operation in place until its completion.
func (s *slot) pin(op *Op) {
	s.pinBytes(op.Buf)
	for _, b := range op.Vector {
		s.pinBytes(b)
	}
	if a := op.Atomic; a != nil {
		s.pinBytes(a.Result)
		s.pinBytes(a.Compare)
	}
}

func (s *slot) pinBytes(b []byte) {
	if len(b) > 0 {
		s.pinners[s.pinned/pinnerRoom].Pin(&b[0])
		s.pinned++
	}
}

func (s *slot) unpin() {
	for i := range s.pinners {
		if int(s.pinned) > i*pinnerRoom {
			s.pinners[i].Unpin()
		}
	}
	s.pinned = 0
}

// give takes the slot back, and makes its tokens void.
func (q *CompletionQueue) give(index uint32) {
	q.retire(index)
	q.free = append(q.free, index)
}

// mostResting is how many failures of others it takes until the slot of an operation
// that has failed on efa is used again. libfabric 1.17 says so for each packet of a
// message, one at a time, and would say it of whatever has the slot.
const mostResting = 1024

// giveLater is give for an operation that has failed.
func (q *CompletionQueue) giveLater(index uint32) {
	q.retire(index)
	if len(q.resting) > 0 {
		index, q.resting[q.oldest] = q.resting[q.oldest], index
		q.oldest = (q.oldest + 1) % len(q.resting)
	}
	q.free = append(q.free, index)
}

// cancelAll ends the operations of an endpoint, each with a completion.
func (q *CompletionQueue) cancelAll(e *Endpoint) {
	for i := range q.table {
		s := &q.table[i]
		if !s.busy || s.endpoint != e {
			continue
		}
		q.cancel(uint32(i), "the connection has ended")
	}
}

// cancel ends an operation of which libfabric may or may not say that it was cancelled.
func (q *CompletionQueue) cancel(index uint32, detail string) {
	s := &q.table[index]
	q.kept = append(q.kept, Completion{
		Context: s.context, Kind: s.kind, Source: AddressAny, Released: s.flags&MultiReceive != 0,
		Err: &Error{Op: s.kind.String(), Provider: q.provider, Errno: Errno(syscall.ECANCELED), Detail: detail},
	})
	q.strand(index)
}

// strand ends an operation whose completion the queue may still hold: the slot is not
// used again.
func (q *CompletionQueue) strand(index uint32) {
	q.retire(index)
	q.stranded++
}

// retire ends an operation without making its slot free for another.
func (q *CompletionQueue) retire(index uint32) {
	s := &q.table[index]
	s.unpin()
	s.fetched.forget()
	if s.one {
		s.one = false
		s.endpoint.several.ones--
	}
	if s.mixable != 0 {
		s.endpoint.several.inFlight[s.mixable-1]--
		s.mixable = 0
	}
	s.busy, s.claimed, s.endpoint = false, false, nil
	if s.trigger != nil {
		s.trigger.awaited.Add(-1)
		s.trigger = nil
	}
	if s.generation = (s.generation + 1) &^ (receiveToken >> 32); s.generation == 0 {
		s.generation = firstGeneration
	}
}

// lookup returns the slot of a token whose operation is in flight.
func (q *CompletionQueue) lookup(t uint64) (uint32, *slot) {
	index, generation := uint32(t), uint32(t>>32)
	if uint64(index) >= uint64(len(q.table)) {
		return 0, nil
	}
	s := &q.table[index]
	if !s.busy || s.generation != generation {
		return 0, nil
	}
	return index, s
}
