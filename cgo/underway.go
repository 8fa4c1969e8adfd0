//go:build linux

package cgo

/*
#include "underway.h"
*/
import "C"

import "unsafe"

// UnderWay is where an endpoint of efa, or of shm, has what is under way of accesses of peers. Any
// goroutine may use it, as long as the endpoint is there.
type UnderWay struct {
	endpoint *C.struct_fid_ep
	at       [C.WEFT_LISTS]C.uint32_t
	lists    C.int
	inner    *UnderWay // of shm
}

// UnderWayOf finds it in an endpoint that was not enabled yet. It is not ok where libfabric has made
// the endpoint in another way.
func UnderWayOf(e Endpoint) (u *UnderWay, ok bool) {
	u, ok = underWayOf(e.p)
	if inner := C.weft_inner_endpoint(e.p); ok && inner != nil {
		u.inner, ok = underWayOf(inner)
	}
	return u, ok
}

func underWayOf(e *C.struct_fid_ep) (u *UnderWay, ok bool) {
	u = &UnderWay{endpoint: e}
	u.lists = C.weft_lists(e, &u.at[0])
	return u, u.lists != 0
}

// Refers notes in found, with 1, which of the regions something there refers to, or may, by their
// descriptors, which are in ascending order. Whether it is known at all is what it returns.
func (u *UnderWay) Refers(descriptors []uintptr, found []uint8) bool {
	if len(descriptors) == 0 {
		return true
	}
	return C.weft_refers(u.endpoint, &u.at[0], u.lists, (*C.uintptr_t)(unsafe.Pointer(&descriptors[0])), C.int(len(descriptors)),
		(*C.uint8_t)(&found[0])) == 0 && (u.inner == nil || u.inner.Refers(descriptors, found))
}

// InnerDescriptor is that of the region of shm that one of efa has inside, or 0.
func (r Region) InnerDescriptor() uintptr {
	inner := C.weft_inner_region(r.p)
	if inner == nil {
		return 0
	}
	return uintptr(C.weft_mr_desc(inner))
}
