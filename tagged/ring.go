package tagged

// ring holds a run of consecutive sequence numbers, each in the slot of its
// number modulo the size. The size is a power of two, or 0 before first use, so
// numbers may wrap at any higher power of two.
type ring[S any] []S

const minRing = 2

func (r ring[S]) at(sequence uint64) *S {
	return &r[sequence&uint64(len(r)-1)]
}

// grow makes room for need slots from the sequence number first on, and keeps
// those that are there. It never shrinks: what was needed once is reused.
func (r *ring[S]) grow(first uint64, need int) {
	if need <= len(*r) {
		return
	}
	size := max(minRing, len(*r))
	for size < need {
		size *= 2
	}
	bigger := make(ring[S], size)
	for i := range uint64(len(*r)) {
		*bigger.at(first + i) = *r.at(first + i)
	}
	*r = bigger
}
