//go:build linux

package cgo

/*
#include "reach.h"
*/
import "C"

// Reach has the regions of a domain of efa that peers may reach. Its methods may be called
// from any goroutine. The zero Reach is none, which nothing can be added to.
type Reach struct{ p *C.struct_weft_reach }

// NewReach returns a Reach without regions. It is Free's when its domain is closed.
func NewReach() (Reach, bool) {
	r := Reach{C.weft_reach_new()}
	return r, r.p != nil
}

// Free gives its memory back.
func (r Reach) Free() { C.weft_reach_free(r.p) }

// Add says that peers may reach a region, with the rights in access (AccessRemoteRead,
// AccessRemoteWrite). Several may have one key.
func (r Reach) Add(key uint64, base uintptr, length, access uint64) Code {
	return codeOf(C.weft_reach_add(r.p, C.uint64_t(key), C.uint64_t(base), C.uint64_t(length), C.uint64_t(access)))
}

// Begun is a set of what libfabric has begun at times in a region of efa, and may go on.
type Begun int

// BegunLong are accesses that go on for long, BegunAtomic atomic operations, which wait for messages
// that are late.
const (
	BegunLong   Begun = C.WEFT_BEGUN_LONG
	BegunAtomic Begun = C.WEFT_BEGUN_ATOMIC
)

// Remove says that they may not any more, of a region as it was added. On return, libfabric is
// not amid the beginning of an access to it, and begins none. What it has begun may go on.
func (r Reach) Remove(key uint64, base uintptr, length, access uint64) Begun {
	return Begun(C.weft_reach_remove(r.p, C.uint64_t(key), C.uint64_t(base), C.uint64_t(length), C.uint64_t(access)))
}

// Guarded is what became of an endpoint or a queue.
type Guarded int

// It does not have the device's queue, or that is guarded already; or it is guarded, and its
// device reads memory of peers, or does not.
const (
	NoQueue        Guarded = C.WEFT_NO_QUEUE
	DeviceReads    Guarded = C.WEFT_READS
	DeviceReadsNot Guarded = C.WEFT_READS_NOT
)

// Guard has a reliable endpoint of the domain that is not enabled yet refuse what peers may
// not reach, where libfabric ends the process. In libfabric 2.x it is not the endpoint that
// has the device's queue, but the completion queue.
func (r Reach) Guard(e Endpoint) Guarded { return Guarded(C.weft_reach_guard(r.p, &e.p.fid)) }

// GuardQueue does it for all endpoints of a completion queue, of which it is the first.
func (r Reach) GuardQueue(q CompletionQueue) Guarded {
	return Guarded(C.weft_reach_guard(r.p, &q.p.fid))
}
