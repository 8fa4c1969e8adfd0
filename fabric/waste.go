//go:build linux

package fabric

import (
	"math"
	"sync"

	"golang.org/x/sys/unix"
)

// waste is memory for a message of any length, the same for all endpoints: what one
// writes there another may write over. None of it is there before it is written.
type waste struct {
	mu     sync.Mutex
	users  int
	memory []byte
}

var scratch waste

// take returns the memory, or nil if the process cannot have any.
func (w *waste) take() *waste {
	w.mu.Lock()
	defer w.mu.Unlock()
	for size := min(1<<40, math.MaxInt); w.memory == nil; size /= 2 {
		if size < 1<<20 {
			return nil
		}
		b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err == nil {
			w.memory = b
		}
	}
	w.users++
	return w
}

// empty gives what was written back to the system.
func (w *waste) empty() { _ = unix.Madvise(w.memory, unix.MADV_DONTNEED) }

// give is the end of take. What a thread may still write into keeps its addresses.
func (w *waste) give(written bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users--; written {
		w.users++
		w.empty()
		return
	}
	if w.users == 0 {
		_ = unix.Munmap(w.memory)
		w.memory = nil
	}
}
