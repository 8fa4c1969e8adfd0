package schedule

import "math/bits"

// A halving cuts the ranks into two parts, those into halves again, and so on down to
// single ranks. Each part has a holder: the root where it is in that part, in a half
// without the holder of the whole the lowest rank, and else that holder. So every part is
// a run of neighbours, and the root holds all of them after as many rounds as there are
// halvings, whichever rank it is. Where the cuts are does not depend on the root.

// part is the ranks from low to below end, and which of them is the holder.
type part struct{ low, end, holder int }

func (p part) size() int { return p.end - p.low }

func (p part) has(rank int) bool { return p.low <= rank && rank < p.end }

// halve cuts a part of more than one rank in two.
func (p part) halve() (lower, upper part) {
	middle := p.low + (p.size()+1)/2
	lower, upper = part{p.low, middle, p.low}, part{middle, p.end, middle}
	if lower.has(p.holder) {
		lower.holder = p.holder
	} else {
		upper.holder = p.holder
	}
	return lower, upper
}

// cut is how a part that has the rank is halved: into the half with the rank and the
// other one.
type cut struct{ whole, mine, other part }

// halvings are the cuts of the parts that have the rank, the largest first.
func halvings(rank, size, root int) []cut {
	cuts := make([]cut, 0, rounds(size))
	for whole := (part{0, size, root}); whole.size() > 1; {
		c := whole.cut(rank)
		cuts = append(cuts, c)
		whole = c.mine
	}
	return cuts
}

func (p part) cut(rank int) cut {
	mine, other := p.halve()
	if other.has(rank) {
		mine, other = other, mine
	}
	return cut{p, mine, other}
}

// rounds is how many halvings there are: the logarithm of size to base 2, rounded up.
func rounds(size int) int { return bits.Len(uint(size - 1)) }

// holding is the place of a rank in a halving: the largest part of which it is the holder.
type holding struct {
	part
	// parent holds what this part is a half of, and has given away nth halves before. It
	// is -1 at the root.
	parent, nth int
	// given are the other halves of what the rank held, the largest first.
	given []part
}

func holdingOf(rank, size, root int) holding {
	h := holding{part: part{0, size, root}, parent: -1}
	nth := 0
	for _, c := range halvings(rank, size, root) {
		switch {
		case c.mine.holder != c.whole.holder:
			h.part, h.parent, h.nth = c.mine, c.whole.holder, nth
			nth = 0
			continue
		case rank == c.whole.holder:
			h.given = append(h.given, c.other)
		}
		nth++
	}
	return h
}

// Partners are ranks of two halves that exchange what their halves have. Where one half has
// a rank more, the first one, that rank's partner is one in the middle of the other, which
// so has two.

// partnerOf is the rank of this part whose partner is that rank of the other part: the one
// that gives to it.
func (p part) partnerOf(other part, rank int) int {
	if i := rank - other.low; i < p.size() {
		return p.low + i
	}
	return p.low + p.size()/2
}

// partners are the ranks of the other part that the rank of this part gives to.
func (p part) partners(other part, rank int) []int {
	all := make([]int, 0, 2)
	if i := rank - p.low; i < other.size() {
		all = append(all, other.low+i)
	}
	if p.hasTwo(other, rank) {
		all = append(all, other.end-1)
	}
	return all
}

func (p part) hasTwo(other part, rank int) bool {
	return other.size() > p.size() && rank == p.low+p.size()/2
}

// partnerCount is how many partners are.
func (p part) partnerCount(other part, rank int) int {
	count := 0
	if rank-p.low < other.size() {
		count++
	}
	if p.hasTwo(other, rank) {
		count++
	}
	return count
}
