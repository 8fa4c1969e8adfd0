package suite

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// footprint is the memory of a process, in bytes.
type footprint struct {
	heap     int64 // in use by Go: what lives, and the gaps between
	stacks   int64 // of goroutines
	resident int64 // all that the process has, C's and the kernel's view of it
}

// currentFootprint first gives back what is not in use.
func currentFootprint() (footprint, error) {
	// What the first collection finds to be finalized, the second frees.
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f := footprint{heap: int64(m.HeapInuse), stacks: int64(m.StackInuse)}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return f, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return f, fmt.Errorf("/proc/self/statm: %w", err)
	}
	f.resident = pages * int64(os.Getpagesize())
	return f, nil
}

// since is what has come on top.
func (f footprint) since() (footprint, error) {
	now, err := currentFootprint()
	return footprint{now.heap - f.heap, now.stacks - f.stacks, now.resident - f.resident}, err
}
