package schedule

import "iter"

// Allgather is the plan of a call that gives all ranks the length units of each, in Output,
// one behind the other in the order of the ranks. Contributions stand in Input, or, with
// Options.InPlace, in their places in Output.
//
// The algorithms are [Bruck], [RecursiveDoubling] and [Direct], and [Ring] for much data
// and many ranks.
func Allgather(rank, size, length int, o Options) (Plan, error) {
	cut, err := evenly(size, length)
	if err != nil {
		return Plan{}, err
	}
	return allgather(rank, cut, o)
}

// Allgatherv is Allgather with a count of its own for each rank, and a place of its own in
// Output. All ranks must give the same blocks.
func Allgatherv(rank int, output Blocks, o Options) (Plan, error) {
	cut, err := output.cut(true)
	if err != nil {
		return Plan{}, err
	}
	return allgather(rank, cut, o)
}

func allgather(rank int, cut blocks, o Options) (Plan, error) {
	s, err := CollectiveAllgather.beginLong(rank, cut.size, 0, cut.length, o)
	if err != nil {
		return Plan{}, err
	}
	mine := cut.in(Output, rank)
	own := mine
	if !s.InPlace {
		own = Span{Input, 0, mine.Length}
	}
	// What is put at once need not wait until it is copied.
	at := func(piece Span) Span { return mine.part(piece.Offset-own.Offset, piece.Length) }
	switch s.Algorithm {
	case Ring:
		for piece := range s.pieces(own) {
			if cut.size > 1 {
				s.put(s.next(), piece, at(piece))
			}
		}
		s.copyOwn(mine, own)
		s.gatherRing(cut)
	case Direct:
		s.expect(2 * s.size)
		for i := range s.pieceCount(own.Length) {
			for peer := range s.others() {
				s.putNumber(peer, i, s.piece(own, i), at(s.piece(own, i)))
			}
		}
		s.copyOwn(mine, own)
		for peer := range s.others() {
			block := cut.in(Output, peer)
			for i := range s.pieceCount(block.Length) {
				s.awaitNumber(peer, i, s.piece(block, i))
			}
		}
	case Bruck:
		s.copyOwn(mine, own)
		s.gatherBruck(cut)
	case RecursiveDoubling:
		s.copyOwn(mine, own)
		s.gatherHalves(Output, cut, -1)
	}
	return s.plan, nil
}

func (s *script) copyOwn(mine, own Span) {
	if !s.InPlace {
		s.copy(mine, own)
	}
}

// gatherRing has each block go around the ring, where this rank has put its own to the
// next already.
func (s *script) gatherRing(cut blocks) {
	s.expect(2 * s.size)
	for step := range s.size - 1 {
		block := cut.in(Output, (s.rank-1-step+s.size)%s.size)
		for piece := range s.pieces(block) {
			s.await(s.previous(), piece)
			if step < s.size-2 {
				s.put(s.next(), piece, piece)
			}
		}
	}
}

// gatherBruck has each rank give all blocks that it has, its own and those of the ranks
// behind it, to the rank 1 before, then 2 before, 4 before... Blocks are put where they
// belong, so those on both sides of the last rank go apart.
func (s *script) gatherBruck(cut blocks) {
	for have := 1; have < s.size; have *= 2 {
		more := min(have, s.size-have)
		to, from := (s.rank-have+s.size)%s.size, (s.rank+have)%s.size
		for piece := range s.circle(cut, s.rank, more) {
			s.put(to, piece, piece)
		}
		for piece := range s.circle(cut, from, more) {
			s.await(from, piece)
		}
	}
}

// circle yields the pieces of so many blocks of Output from first on, where rank 0 follows
// the last.
func (s *script) circle(cut blocks, first, count int) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		upper := part{low: first, end: min(first+count, s.size)}
		lower := part{end: count - upper.size()}
		for _, p := range []part{upper, lower} {
			for run := range cut.runs(Output, p) {
				for piece := range s.pieces(run) {
					if !yield(piece) {
						return
					}
				}
			}
		}
	}
}

// gatherHalves gives all blocks to all ranks: the smallest parts exchange theirs first.
// Each rank has its own at the beginning; with a root, it has those of the part that it
// holds, and gets the others only. They are in that space at this rank, in Output at
// others.
func (s *script) gatherHalves(space Space, cut blocks, root int) {
	cuts := halvings(s.rank, s.size, root)
	for i := len(cuts) - 1; i >= 0; i-- {
		c := cuts[i]
		for _, peer := range c.mine.partners(c.other, s.rank) {
			if root >= 0 && peer == c.whole.holder {
				continue
			}
			for run := range cut.runs(space, c.mine) {
				for piece := range s.pieces(run) {
					s.put(peer, piece, Span{Output, piece.Offset, piece.Length})
				}
			}
		}
		if root >= 0 && s.rank == c.whole.holder {
			continue
		}
		from := c.other.partnerOf(c.mine, s.rank)
		for run := range cut.runs(Output, c.other) {
			for piece := range s.pieces(run) {
				s.await(from, piece)
			}
		}
	}
}
