package cgo

import "sync/atomic"

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
