//go:build linux

package cgo

/*
#cgo noescape weft_collective_post
#cgo nocallback weft_collective_post
#cgo noescape weft_query_collective
#cgo nocallback weft_query_collective
#include "collective.h"
*/
import "C"

import "unsafe"

// Kinds of collective.
//
// Implements: ssize_t fi_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
// Implements: ssize_t fi_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags, void *context)
// Implements: ssize_t fi_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags, void *context)
// Implements: ssize_t fi_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags, void *context)
// Implements: ssize_t fi_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context)
// Implements: ssize_t fi_allgather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags, void *context)
// Implements: ssize_t fi_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context)
// Implements: ssize_t fi_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context)
// Implements: ssize_t fi_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags, void *context)
// Implements: ssize_t fi_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags, void *context)
const (
	CollectiveBarrier       uint32 = C.FI_BARRIER
	CollectiveBroadcast     uint32 = C.FI_BROADCAST
	CollectiveAllToAll      uint32 = C.FI_ALLTOALL
	CollectiveAllReduce     uint32 = C.FI_ALLREDUCE
	CollectiveAllGather     uint32 = C.FI_ALLGATHER
	CollectiveReduceScatter uint32 = C.FI_REDUCE_SCATTER
	CollectiveReduce        uint32 = C.FI_REDUCE
	CollectiveScatter       uint32 = C.FI_SCATTER
	CollectiveGather        uint32 = C.FI_GATHER
)

// What stands for no data type and for no operation in collectives, and the
// flag of a message to a multicast group.
const (
	TypeVoid      uint32 = C.FI_VOID
	OpNone        uint32 = C.FI_NOOP
	FlagMulticast uint64 = C.FI_MULTICAST
)

// Collective is one collective to post, laid out like struct weft_collective.
// Whoever fills it in keeps the memory of Buf and Result alive and in place
// until the collective is complete.
type Collective struct {
	Kind, Datatype, Op uint32
	_                  uint32
	Buf                uintptr
	Count              uint64
	Descriptor         uintptr
	Result             uintptr
	ResultDescriptor   uintptr
	Group              uint64
	Root               uint64
	Flags              uint64
	Slot               uintptr
	Token              uint64
}

// The two sides must agree on the layout: the compiler refuses a negative array
// size on either inequality.
var (
	_ [unsafe.Sizeof(Collective{}) - C.sizeof_struct_weft_collective]byte
	_ [C.sizeof_struct_weft_collective - unsafe.Sizeof(Collective{})]byte
)

// PostCollective posts a collective.
func (e Endpoint) PostCollective(c *Collective) Code {
	return codeOf(C.weft_collective_post(e.p, (*C.struct_weft_collective)(unsafe.Pointer(c))))
}

// QueryCollective says what the domain can do: how many members a group has at
// most, and how many values of which size an operation.
//
// Implements: int fi_query_collective(struct fid_domain *domain, enum fi_collective_op coll, struct fi_collective_attr *attr, uint64_t flags)
func (d Domain) QueryCollective(kind, op, datatype uint32) (members, count, size uint64, code Code) {
	var m, n, s C.uint64_t
	code = codeOf(C.weft_query_collective(d.p, C.uint32_t(kind), C.uint32_t(op), C.uint32_t(datatype), &m, &n, &s))
	return uint64(m), uint64(n), uint64(s), code
}

// Multicast is a fid_mc: what an endpoint has joined.
type Multicast struct{ p *C.struct_fid_mc }

// JoinCollective joins the group of a set, by an address that stands for it.
//
// Implements: int fi_join_collective(struct fid_ep *ep, fi_addr_t coll_addr, const struct fid_av_set *set, uint64_t flags, struct fid_mc **mc, void *context)
func (e Endpoint) JoinCollective(address uint64, s AddressSet, flags uint64) (m Multicast, code Code) {
	code = codeOf(C.weft_join_collective(e.p, C.uint64_t(address), s.p, C.uint64_t(flags), &m.p))
	return m, code
}

// Join joins a multicast group by its address, of the endpoint's own format.
//
// Implements: int fi_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
func (e Endpoint) Join(address []byte, flags uint64) (m Multicast, code Code) {
	code = codeOf(C.weft_join(e.p, unsafe.Pointer(unsafe.SliceData(address)), C.uint64_t(flags), &m.p))
	return m, code
}

// Address is what operations of the group are addressed to.
//
// Implements: fi_addr_t fi_mc_addr(struct fid_mc *mc)
func (m Multicast) Address() uint64 { return uint64(C.weft_mc_addr(m.p)) }

// Identity is what Object of an event about the group is.
func (m Multicast) Identity() uintptr { return uintptr(unsafe.Pointer(&m.p.fid)) }

// Close leaves the group (fi_close).
func (m Multicast) Close() Code { return codeOf(C.weft_close(&m.p.fid)) }
