package fabric

import (
	"math"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// AtomicLimit says how many values one operation of an endpoint can have, or
// ErrNotSupported if it cannot do the operation on that type at all. kind is
// OpAtomic, OpFetch or OpCompare.
//
// Implements: int fi_atomicvalid(...), fi_fetch_atomicvalid(...), fi_compare_atomicvalid(...)
func (e *Endpoint) AtomicLimit(kind OpKind, t DataType, o AtomicOp) (int, error) {
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	if e.turn == nil {
		return 0, e.notEnabled("fi_atomicvalid")
	}
	if kind != OpAtomic && kind != OpFetch && kind != OpCompare {
		return 0, e.invalid("fi_atomicvalid", kind.String()+" is no atomic operation")
	}
	if why := noAtomic(t, o); why != "" {
		return 0, e.invalid("fi_atomicvalid", why)
	}
	if err := e.whole("fi_atomicvalid"); err != nil {
		return 0, err
	}
	if !atHand(t, o) {
		return 0, fail("fi_atomicvalid", e.provider, int(syscall.EOPNOTSUPP))
	}
	n, code := e.raw.AtomicLimit(kinds[kind].code, t.native(), o.native())
	return mostAtomic(e.withinHostByShm(), kind, t, n), fail("fi_atomicvalid", e.provider, int(code))
}

// AtomicLimit is Endpoint.AtomicLimit before there is an endpoint.
//
// Implements: int fi_query_atomic(...)
func (d *Domain) AtomicLimit(kind OpKind, t DataType, o AtomicOp) (int, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.leave()
	var flags uint64
	switch kind {
	case OpAtomic:
	case OpFetch:
		flags = cgo.QueryFetch
	case OpCompare:
		flags = cgo.QueryCompare
	default:
		return 0, d.invalid("fi_query_atomic", kind.String()+" is no atomic operation")
	}
	if why := noAtomic(t, o); why != "" {
		return 0, d.invalid("fi_query_atomic", why)
	}
	if !atHand(t, o) {
		return 0, fail("fi_query_atomic", d.provider, int(syscall.EOPNOTSUPP))
	}
	n, _, code := d.raw.QueryAtomic(t.native(), o.native(), flags)
	return mostAtomic(withinHostByShm(d.provider), kind, t, n), fail("fi_query_atomic", d.provider, int(code))
}

// mostAtomic is how many of n values that the provider says it takes go in one operation. Within a host efa
// has shm do it, and says what the device takes: of more than fits one of shm's buffers the rest is lost, or
// written over what another operation has in the next one.
func mostAtomic(byShm bool, kind OpKind, t DataType, n int) int {
	const buffer = 4096
	switch {
	case !byShm:
		return n
	case kind == OpCompare:
		return min(n, buffer/2/t.Size())
	}
	return min(n, buffer/t.Size())
}

// withinHostByShm says of a provider that has something else for other hosts that what stays within this
// one goes by shm: efa. The endpoint's is whether its own does, which may have been told not to.
func withinHostByShm(provider string) bool {
	return core(provider) == "efa" && looksAtNeighbours(provider)
}

func (e *Endpoint) withinHostByShm() bool {
	return !e.deviceAlone.Load() && withinHostByShm(e.provider)
}

// noAtomic says what keeps a type and an operation from being asked for, or "".
func noAtomic(t DataType, o AtomicOp) string {
	switch {
	case t.Size() == 0:
		return noType(t)
	case o == 0:
		return "it needs an Operation, such as Sum"
	case o > Difference:
		return "there is no atomic operation " + strconv.Itoa(int(o))
	}
	return ""
}

// atHand says that the library has a type and an operation at all: what is behind
// its last ones, it takes for places in its tables.
func atHand(t DataType, o AtomicOp) bool {
	return !olderThanTwo || t <= Uint128 && o <= MaskedSwap
}

// atomicLimits are the values that one operation of an endpoint can have, by
// kind, operation and type, as far as they were asked for: -1 for none, 0 where
// nobody has asked yet.
type atomicLimits [OpCompare - OpAtomic + 1][Difference + 1][Float8E5M2 + 1]atomic.Int32

// lacking says why the endpoint has no such atomic operation. Posted all the same,
// it would end the process of the peer: the providers look for its function in a
// table, and call what they find there.
func (e *Endpoint) lacking(op *Op) (Errno, string) {
	if !kinds[op.Kind].atomic {
		return 0, ""
	}
	if e.freesTwice(op) {
		return Errno(syscall.ENOSYS), "an atomic with DeliveryComplete breaks the peer's memory on shm, by which efa goes within a host; an OpFetch is complete when it is done there"
	}
	a, kind := op.Atomic, op.Kind
	if a.misplaced(op) {
		return errnoInvalid, "values of " + a.Type.String() + " are at multiples of 16 of the peer's addresses"
	}
	if kind == OpAtomicInject {
		kind = OpAtomic
	}
	limits := e.atomics.Load()
	if limits == nil {
		e.atomics.CompareAndSwap(nil, new(atomicLimits))
		limits = e.atomics.Load()
	}
	known := &limits[kind-OpAtomic][a.Operation][a.Type]
	limit := int(known.Load())
	if limit == 0 {
		limit = -1
		if atHand(a.Type, a.Operation) {
			if n, code := e.raw.AtomicLimit(kinds[kind].code, a.Type.native(), a.Operation.native()); code == 0 && n > 0 {
				limit = min(mostAtomic(e.withinHostByShm(), kind, a.Type, n), math.MaxInt32)
			}
		}
		known.Store(int32(limit))
	}
	switch values := a.values(op); {
	case limit < 0:
		return Errno(syscall.EOPNOTSUPP), "there is no " + kind.String() + " with " + a.Operation.String() + " of " + a.Type.String() + " here"
	case values > limit:
		return errnoInvalid, "at most " + strconv.Itoa(limit) + " values of " + a.Type.String() + " with " + a.Operation.String() +
			", not " + strconv.Itoa(values)
	}
	return 0, ""
}

// misplaced says of an operation on values of 128 bits that they are not where a processor has them: it
// loads them as such, in the process of the peer, which dies of SIGSEGV if they are elsewhere. Of the
// providers, sockets of 1.17 has such operations.
func (a *Atomic) misplaced(op *Op) bool {
	if a.Type != Int128 && a.Type != Uint128 {
		return false
	}
	const multiple = 16
	for i := range op.Remotes {
		if op.Remotes[i].Address%multiple != 0 {
			return true
		}
	}
	return len(op.Remotes) == 0 && op.Remote.Address%multiple != 0
}

// freesTwice says of an operation that both sides give its buffer of the target back, which has
// it twice then: whatever of others is in one is written over by the next, such as the name
// of a peer that introduces itself, and the target can die of SIGSEGV. So do endpoints of efa within
// a host, and which peers are of it libfabric does not say.
func (e *Endpoint) freesTwice(op *Op) bool {
	if op.Kind != OpAtomic || e.flagsOf(op)&DeliveryComplete == 0 {
		return false
	}
	return core(e.provider) == "shm" || e.withinHostByShm()
}
