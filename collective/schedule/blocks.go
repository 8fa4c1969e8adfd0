package schedule

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Blocks says what parts a space of the caller's has, one for each rank.
type Blocks struct {
	// Counts are the lengths in units, by rank.
	Counts []int
	// Displacements are where they begin. nil means one behind the other. What does
	// not belong to a block is not touched. Blocks of an Output have nothing in common.
	Displacements []int
}

// blocks is a length that is cut into as many blocks as there are ranks. Without starts,
// they are equal, or the first ones one unit longer where they cannot be.
type blocks struct {
	size, length int
	// starts are where each block begins and the last ends, if one lies behind the
	// other.
	starts []int
	// places are where they are in a space of the caller's; nil means the same.
	places []int
}

// evenly are blocks of so many units for each rank.
func evenly(size, length int) (blocks, error) {
	if err := checkLength(size, length); err != nil {
		return blocks{}, err
	}
	return blocks{size: size, length: size * length}, nil
}

// cut checks the blocks of so many ranks. Of an Output they must not overlap.
func (b Blocks) cut(output bool) (blocks, error) {
	size := len(b.Counts)
	cut := blocks{size: size, starts: make([]int, size+1), places: b.Displacements}
	if size < 1 || size > MaxSize {
		return cut, &ArgumentError{"number of counts", size, fmt.Sprintf("1 to %d", MaxSize)}
	}
	if b.Displacements != nil && len(b.Displacements) != size {
		return cut, &ArgumentError{"number of displacements", len(b.Displacements), fmt.Sprintf("none, or %d as of counts", size)}
	}
	for rank, count := range b.Counts {
		if count < 0 || count > MaxUnits/size {
			return cut, &ArgumentError{fmt.Sprintf("count of rank %d", rank), count, fmt.Sprintf("0 to %d", MaxUnits/size)}
		}
		cut.length += count
		cut.starts[rank+1] = cut.length
	}
	for rank, at := range b.Displacements {
		if at < 0 || at > MaxUnits {
			return cut, &ArgumentError{fmt.Sprintf("displacement of rank %d", rank), at, fmt.Sprintf("0 to %d", MaxUnits)}
		}
	}
	if output {
		return cut, cut.apart()
	}
	return cut, nil
}

// apart says whether no two blocks overlap.
func (b blocks) apart() error {
	order := make([]int, 0, b.size)
	sorted := true
	for block := range b.size {
		if b.count(block) > 0 {
			sorted = sorted && (len(order) == 0 || b.place(order[len(order)-1]) <= b.place(block))
			order = append(order, block)
		}
	}
	if !sorted {
		slices.SortFunc(order, func(x, y int) int { return cmp.Compare(b.place(x), b.place(y)) })
	}
	for i := 1; i < len(order); i++ {
		if end := b.place(order[i-1]) + b.count(order[i-1]); b.place(order[i]) < end {
			return &ArgumentError{
				fmt.Sprintf("displacement of rank %d", order[i]), b.place(order[i]),
				fmt.Sprintf("at least %d, where the block of rank %d ends", end, order[i-1]),
			}
		}
	}
	return nil
}

// start is where block b begins, and, of b = size, where the last ends.
func (b blocks) start(block int) int {
	if b.starts != nil {
		return b.starts[block]
	}
	return block*(b.length/b.size) + min(block, b.length%b.size)
}

// count is the length of a block.
func (b blocks) count(block int) int { return b.start(block+1) - b.start(block) }

// place is where a block begins in the caller's space.
func (b blocks) place(block int) int {
	if b.places != nil {
		return b.places[block]
	}
	return b.start(block)
}

// most is the length of the longest block.
func (b blocks) most() int {
	if b.starts == nil {
		return b.count(0)
	}
	most := 0
	for block := range b.size {
		most = max(most, b.count(block))
	}
	return most
}

// of is block b of a span in which they lie one behind the other.
func (b blocks) of(span Span, block int) Span { return b.run(span, block, block+1) }

// run is the blocks from first to below end of a span in which they lie one behind the
// other.
func (b blocks) run(span Span, first, end int) Span {
	start := b.start(first)
	return span.part(start, b.start(end)-start)
}

// in is a block where the caller has it in that space.
func (b blocks) in(space Space, block int) Span {
	return Span{space, b.place(block), b.count(block)}
}

// runs yields the blocks of a part of the ranks where the caller has them in that space:
// as few spans as will do, and none without units, in the order of the ranks.
func (b blocks) runs(space Space, p part) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		if b.places == nil {
			if span := b.run(Span{Space: space}, p.low, p.end); span.Length > 0 {
				yield(span)
			}
			return
		}
		var span Span
		for block := p.low; block < p.end; block++ {
			next := b.in(space, block)
			switch {
			case next.Length == 0:
			case span.Length > 0 && next.Offset == span.Offset+span.Length:
				span.Length += next.Length
			default:
				if span.Length > 0 && !yield(span) {
					return
				}
				span = next
			}
		}
		if span.Length > 0 {
			yield(span)
		}
	}
}

// packed are the blocks of a part of the ranks one behind the other in Scratch, which has
// those from low on.
func (b blocks) packed(p part, low int) Span {
	span := b.run(Span{Space: Scratch}, p.low, p.end)
	span.Offset -= b.start(low)
	return span
}
