package schedule

// heap is a tree over all ranks of which the root comes first, then its children, then
// theirs, each with as many children as the fan-out says and the last with what is left.
// Ranks are counted from the root on: virtual rank v is rank v + root.
type heap struct{ size, root, fanout int }

func (h heap) virtual(rank int) int { return (rank - h.root + h.size) % h.size }

func (h heap) rank(virtual int) int { return (virtual + h.root) % h.size }

func (h heap) parent(virtual int) int { return (virtual - 1) / h.fanout }

// children are the virtual ranks from first to below end.
func (h heap) children(virtual int) (first, end int) {
	// fanout may be so large that the product would overflow.
	if virtual > (h.size-1)/h.fanout {
		return h.size, h.size
	}
	first = min(h.fanout*virtual+1, h.size)
	return first, first + min(h.fanout, h.size-first)
}

// depth is how far a virtual rank is from the root.
func (h heap) depth(virtual int) int {
	depth := 0
	for ; virtual > 0; virtual = h.parent(virtual) {
		depth++
	}
	return depth
}
