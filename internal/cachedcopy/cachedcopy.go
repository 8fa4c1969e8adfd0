// Package cachedcopy copies memory so that it is in the caches behind.
package cachedcopy

import "unsafe"

const (
	// Go's copy of 1 MiB and more writes past the caches on amd64 (runtime/memmove_amd64.s).
	// Who reads that next, a peer or a sum, waits for memory: copying 1 MiB and reading it takes
	// twice as long as by pieces.
	leastUncached = 1 << 20
	piece         = leastUncached / 4
	// More than that takes the place of what calls have in the caches beside it: an allgather of
	// 4 MiB on two ranks took a seventh longer.
	mostCached = 2 << 20
)

// Copy is the copy of the language.
func Copy(dst, src []byte) int {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	if n < leastUncached || n > mostCached || overlap(dst, src) {
		return copy(dst, src)
	}
	for done := 0; done < n; done += piece {
		copy(dst[done:min(done+piece, n)], src[done:])
	}
	return n
}

// overlap says whether two slices that are not empty share memory.
func overlap(a, b []byte) bool {
	first, other := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return first < other+uintptr(len(b)) && other < first+uintptr(len(a))
}
