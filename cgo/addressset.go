//go:build linux

package cgo

/*
#include "addresses.h"
*/
import "C"

import "unsafe"

// What an address set is to be used for.
const (
	SetBarrier       uint64 = C.FI_BARRIER_SET
	SetBroadcast     uint64 = C.FI_BROADCAST_SET
	SetAllToAll      uint64 = C.FI_ALLTOALL_SET
	SetAllReduce     uint64 = C.FI_ALLREDUCE_SET
	SetAllGather     uint64 = C.FI_ALLGATHER_SET
	SetReduceScatter uint64 = C.FI_REDUCE_SCATTER_SET
	SetReduce        uint64 = C.FI_REDUCE_SET
	SetScatter       uint64 = C.FI_SCATTER_SET
	SetGather        uint64 = C.FI_GATHER_SET
)

// AddressSet is a fid_av_set.
type AddressSet struct{ p *C.struct_fid_av_set }

// OpenSet opens a set of the vector's addresses, with one peer or, for
// NoAddress, none.
//
// Implements: int fi_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context)
func (v AddressVector) OpenSet(capacity int, first uint64, key []byte, flags uint64) (s AddressSet, code Code) {
	code = codeOf(C.weft_av_set_open(v.p, C.uint64_t(capacity), C.uint64_t(first),
		unsafe.Pointer(unsafe.SliceData(key)), C.uint64_t(len(key)), C.uint64_t(flags), &s.p))
	return s, code
}

// Insert appends a peer.
//
// Implements: int fi_av_set_insert(struct fid_av_set *set, fi_addr_t addr)
func (s AddressSet) Insert(peer uint64) Code {
	return codeOf(C.weft_av_set_insert(s.p, C.uint64_t(peer)))
}

// Remove takes a peer out. libfabric's own sets then put the last member in its
// place.
//
// Implements: int fi_av_set_remove(struct fid_av_set *set, fi_addr_t addr)
func (s AddressSet) Remove(peer uint64) Code {
	return codeOf(C.weft_av_set_remove(s.p, C.uint64_t(peer)))
}

// Union appends the members of another set that are missing.
//
// Implements: int fi_av_set_union(struct fid_av_set *dst, const struct fid_av_set *src)
func (s AddressSet) Union(from AddressSet) Code {
	return codeOf(C.weft_av_set_union(s.p, from.p))
}

// Address is what collectives of the set are addressed to.
//
// Implements: int fi_av_set_addr(struct fid_av_set *set, fi_addr_t *coll_addr)
func (s AddressSet) Address() (address uint64, code Code) {
	var to C.uint64_t
	code = codeOf(C.weft_av_set_addr(s.p, &to))
	return uint64(to), code
}

// Close closes the set (fi_close).
func (s AddressSet) Close() Code { return codeOf(C.weft_close(&s.p.fid)) }
