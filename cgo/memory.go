package cgo

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Purpose says what C memory is for.
type Purpose int

// The purposes that memory is counted by.
const (
	PurposeSlots    Purpose = iota // contexts of operations in flight
	PurposeTurns                   // operations and completions on their way across
	PurposeDeferred                // operations that wait for a counter
	purposes
)

func (p Purpose) String() string { return [...]string{"slots", "turns", "deferred work"}[p] }

var inUse [purposes]atomic.Int64

// MemoryInUse returns the bytes of C memory allocated for a purpose.
func MemoryInUse() map[Purpose]int64 {
	m := make(map[Purpose]int64)
	for p := range purposes {
		if n := inUse[p].Load(); n != 0 {
			m[p] = n
		}
	}
	return m
}

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
