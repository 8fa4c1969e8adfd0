//go:build linux

package cgo

/*
#include <stdlib.h>
#include "counted.h"
#include "shim.h"
*/
import "C"

import "unsafe"

// allocate returns zeroed C memory; there is no memory left if it is nil.
func allocate(p Purpose, count int, size uintptr) unsafe.Pointer {
	m := C.calloc(C.size_t(count), C.size_t(size))
	if m != nil {
		inUse[p].Add(int64(count) * int64(size))
	}
	return m
}

func release(p Purpose, m unsafe.Pointer, count int, size uintptr) {
	if m != nil {
		C.free(m)
		inUse[p].Add(-int64(count) * int64(size))
	}
}

// takenInC is how much C itself has taken for a purpose.
func takenInC(p Purpose) int64 {
	if p < firstInC {
		return 0
	}
	return int64(C.weft_taken(C.enum_weft_purpose(p - firstInC)))
}
