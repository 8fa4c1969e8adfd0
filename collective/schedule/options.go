package schedule

import (
	"fmt"
	"iter"
	"math"
)

const (
	// MaxSize is the most ranks of a call.
	MaxSize = 1 << 16
	// MaxUnits is the most units that the ranks of a call can have together: size times
	// length, whatever the collective, or size times the largest count. So nothing that is
	// reckoned with overflows. Where an int has 32 bits, it is far less.
	MaxUnits = min(1<<43, math.MaxInt>>20+1)
	// MaxPieces is the most pieces that Options.Chunk may make of the length of a call.
	MaxPieces = 1 << 16
)

// Options is what all ranks of a call choose alike, but for InPlace. The zero Options
// work.
type Options struct {
	// Fanout is how many children a rank has in a tree; 0 means 2. With 1 the tree is a
	// chain.
	Fanout int
	// Chunk has long puts cut into pieces of so many units, the last one shorter, so that
	// a rank hands on or combines the first while the next are on their way. 0 means
	// whole puts.
	Chunk int
	// Algorithm is how. [Default] is the first of [Algorithms] that keeps the order of the
	// operands, or, with Commutative, the first of all.
	Algorithm Algorithm
	// Commutative says that operands may change places: a op b is b op a.
	Commutative bool
	// InPlace says that what this rank contributes stands in Output, where the result
	// will be, and that Input is not used. Each function says where. But for Alltoall and
	// Alltoallv it is a matter of each rank alone.
	InPlace bool
}

func (o Options) fanout() int {
	if o.Fanout == 0 {
		return 2
	}
	return o.Fanout
}

// own is where the contribution of a rank stands that has length units.
func (o Options) own(length int) Span {
	if o.InPlace {
		return Span{Output, 0, length}
	}
	return Span{Input, 0, length}
}

// pieces yields the parts that Chunk makes of a span, in order. It yields none of an empty
// one.
func (o Options) pieces(span Span) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for i := range o.pieceCount(span.Length) {
			if !yield(o.piece(span, i)) {
				return
			}
		}
	}
}

// piece is one of the pieces of a span, and empty behind the last.
func (o Options) piece(span Span, i int) Span {
	if i >= o.pieceCount(span.Length) {
		return span.part(0, 0)
	}
	if o.Chunk == 0 {
		return span
	}
	return span.part(i*o.Chunk, min(o.Chunk, span.Length-i*o.Chunk))
}

// pieceCount is the number of pieces of so many units.
func (o Options) pieceCount(length int) int {
	switch {
	case length == 0:
		return 0
	case o.Chunk == 0:
		return 1
	}
	return (length-1)/o.Chunk + 1
}

// check says what is wrong with what all ranks of a call say, of which the longest span
// that is cut into pieces has length units.
func (o Options) check(size, root, length int) error {
	switch {
	case size < 1 || size > MaxSize:
		return &ArgumentError{"size", size, fmt.Sprintf("1 to %d", MaxSize)}
	case root < 0 || root >= size:
		return &ArgumentError{"root", root, fmt.Sprintf("0 to %d", size-1)}
	case o.Fanout < 0:
		return &ArgumentError{"fan-out", o.Fanout, "at least 1, or 0 for 2"}
	case o.Chunk < 0:
		return &ArgumentError{"chunk", o.Chunk, "at least 1, or 0 for none"}
	case o.pieceCount(length) > MaxPieces:
		return &ArgumentError{"chunk", o.Chunk, fmt.Sprintf("at least %d for %d units", (length-1)/MaxPieces+1, length)}
	}
	return nil
}

// checkLength says whether so many ranks can have so many units each.
func checkLength(size, length int) error {
	if size < 1 || size > MaxSize {
		return &ArgumentError{"size", size, fmt.Sprintf("1 to %d", MaxSize)}
	}
	if length < 0 || length > MaxUnits/size {
		return &ArgumentError{"length", length, fmt.Sprintf("0 to %d", MaxUnits/size)}
	}
	return nil
}

func checkRank(rank, size int) error {
	if rank < 0 || rank >= size {
		return &ArgumentError{"rank", rank, fmt.Sprintf("0 to %d", size-1)}
	}
	return nil
}
