package schedule

import "math/bits"

// Allreduce is the plan of a call that combines the length units of each rank, element by
// element, in the Output of all. Contributions stand in Input, or, with Options.InPlace, in
// Output. All ranks get the same bits.
//
// The algorithms are [RecursiveDoubling] and [Direct] for little data; [Rabenseifner],
// [Pairwise] and [Ring] for much, of which Ring needs Options.Commutative; and
// [ReduceBcast]. All but Ring keep the order of the ranks, ReduceBcast by a [Tree] with
// Commutative and by a [Binomial] one without.
func Allreduce(rank, size, length int, o Options) (Plan, error) {
	s, err := CollectiveAllreduce.begin(rank, size, 0, length, o)
	if err != nil {
		return Plan{}, err
	}
	switch {
	case size == 1:
		s.keep(length)
	case s.Algorithm == RecursiveDoubling:
		s.doubling(length)
	case s.Algorithm == ReduceBcast:
		s.reduceBcast(length)
	case s.Algorithm == Rabenseifner:
		s.rabenseifner(length)
	case s.Algorithm == Ring:
		s.ringAllreduce(length)
	case s.Algorithm == Direct:
		s.directAllreduce(length)
	case s.Algorithm == Pairwise:
		s.pairwiseAllreduce(length)
	}
	return s.plan, nil
}

// reduceBcast reduces piece after piece to rank 0, which hands each on at once. The others
// do so when they have sent up all of theirs.
//
// What comes down into Output in place has been combined from it, so it is free.
func (s *script) reduceBcast(length int) {
	var combine func(piece Span)
	if s.Commutative {
		combine = s.combineTree(0, length)
	} else {
		combine = s.combineHalves(0, length)
	}
	hand := s.handOn(0)
	for piece := range s.pieces(s.own(length)) {
		combine(piece)
		if s.rank == 0 {
			hand(Span{Output, piece.Offset, piece.Length})
		}
	}
	if s.rank > 0 {
		for piece := range s.pieces(Span{Output, 0, length}) {
			hand(piece)
		}
	}
}

// folded is the place of a rank among as many as are a power of two. Where there are
// more, the first ones are pairs: the even rank gives its contribution to the odd one
// above, which takes part for both and gives it the result.
type folded struct {
	size   int // the power of two
	pairs  int
	rank   int // among size; that of the odd one for the even rank of a pair
	even   bool
	odd    bool
	rounds int
}

func fold(rank, size int) folded {
	f := folded{rounds: bits.Len(uint(size)) - 1}
	f.size = 1 << f.rounds
	f.pairs = size - f.size
	if rank < 2*f.pairs {
		f.rank, f.even, f.odd = rank/2, rank%2 == 0, rank%2 == 1
	} else {
		f.rank = rank - f.pairs
	}
	return f
}

// peer is the rank whose number among the power of two differs in one bit.
func (f folded) peer(round int) int {
	peer := f.rank ^ 1<<round
	if peer < f.pairs {
		return 2*peer + 1
	}
	return peer + f.pairs
}

// lower says whether that peer is below.
func (f folded) lower(round int) bool { return f.rank>>round&1 == 1 }

// doubling exchanges all that was combined so far with the rank 1 away, 2 away, 4 away...
// Neighbours come first, so the order of the ranks is kept, and both reckon the same.
// Each round has a slot of Scratch, in which its sum stays: a put reads it until nobody
// knows when. So in place the first put reads a copy, since the last sum goes to Output.
func (s *script) doubling(length int) {
	f := fold(s.rank, s.size)
	given := Span{Scratch, 0, length} // by the even rank of the pair
	slot := func(round int) Span { return given.part((min(f.pairs, 1)+round)*length, length) }
	s.plan.Scratch = slot(f.rounds).Offset
	own := s.own(length)
	if f.even {
		s.giveAndTake(own)
		return
	}
	sum := own
	first := own // what the first put reads
	if f.odd {
		sum, first = given, given
	} else if s.InPlace {
		first = slot(f.rounds)
		s.plan.Scratch += length
		s.copy(first, own)
	}
	for piece := range s.pieces(given) {
		at, n := piece.Offset, piece.Length
		if f.odd {
			s.await(s.rank-1, given.part(at, n))
			s.reduce(given.part(at, n), given.part(at, n), own.part(at, n))
		}
		s.put(f.peer(0), first.part(at, n), slot(0).part(at, n))
	}
	for round := range f.rounds {
		dst := slot(round)
		last := round == f.rounds-1
		if last {
			dst = Span{Output, 0, length}
		}
		for piece := range s.pieces(given) {
			at, n := piece.Offset, piece.Length
			s.await(f.peer(round), slot(round).part(at, n))
			lower, higher := sum.part(at, n), slot(round).part(at, n)
			if f.lower(round) {
				lower, higher = higher, lower
			}
			s.reduce(dst.part(at, n), lower, higher)
			if !last {
				s.put(f.peer(round+1), dst.part(at, n), slot(round+1).part(at, n))
			} else if f.odd {
				s.put(s.rank-1, dst.part(at, n), dst.part(at, n))
			}
		}
		sum = dst
	}
}

// giveAndTake is what the even rank of a pair does: it gives its contribution to the odd
// one, at the beginning of its Scratch, and awaits the result. What comes into Output in
// place has been combined from it, so it is free.
func (s *script) giveAndTake(own Span) {
	for piece := range s.pieces(own) {
		s.put(s.rank+1, piece, Span{Scratch, piece.Offset, piece.Length})
	}
	for piece := range s.pieces(own) {
		s.await(s.rank+1, Span{Output, piece.Offset, piece.Length})
	}
}
