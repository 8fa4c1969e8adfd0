package cgo

import "sync/atomic"

// Purpose says what C memory is for.
type Purpose int

// The purposes that memory is counted by.
const (
	PurposeSlots       Purpose = iota // contexts of operations in flight
	PurposeTurns                      // operations and completions on their way across
	PurposeDeferred                   // operations that wait for a counter
	PurposeEvents                     // event queues of which few errors are kept
	PurposeAccesses                   // what peers may reach, and ask for
	PurposeHost                       // operations of efa within a host
	PurposeConnections                // what ofi_rxm has, registers and gets in parts, where peers of ofi_rxd are
	purposes

	firstInC = PurposeEvents // of those that C counts
)

func (p Purpose) String() string {
	return [...]string{
		"slots", "turns", "deferred work", "event queues", "accesses of peers", "operations within the host", "connections",
	}[p]
}

var inUse [purposes]atomic.Int64

// MemoryInUse returns the bytes of C memory allocated for a purpose.
func MemoryInUse() map[Purpose]int64 {
	m := make(map[Purpose]int64)
	for p := range purposes {
		if n := inUse[p].Load() + takenInC(p); n != 0 {
			m[p] = n
		}
	}
	return m
}
