package schedule

import "iter"

// next and previous are the neighbours in the ring.
func (s *script) next() int { return (s.rank + 1) % s.size }

func (s *script) previous() int { return (s.rank + s.size - 1) % s.size }

// others yields all other ranks, each rank beginning with the one before, so that not all
// put to the same one at once, and what is put here comes in the order of the ranks from
// the next one on.
func (s *script) others() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 1; i < s.size; i++ {
			if !yield((s.rank - i + s.size) % s.size) {
				return
			}
		}
	}
}

// combineAll gives each other rank the source that is for it, combines what all have for
// this one in the order of the ranks, and says when a piece of the result is there. It uses
// the beginning of Scratch, with a slot for each other rank.
//
// It begins with rank 0, or, asComes, with this rank, and adds what the lower ranks have in
// one at the end: so it can go on with each as it comes, but where the brackets are depends
// on the rank.
func (s *script) combineAll(source func(peer int) Span, result Span, asComes bool, done func(piece Span)) {
	slot := func(from, to, length int) Span {
		return Span{Scratch, (from - to - 1 + s.size) % s.size * length, length}
	}
	s.need((s.size - 1) * result.Length)
	s.expect(3 * (s.size - 1) * max(1, s.pieceCount(result.Length)))
	longest := 0
	for peer := range s.others() {
		longest = max(longest, s.pieceCount(source(peer).Length))
	}
	for i := range longest {
		for peer := range s.others() {
			src := source(peer)
			piece := s.piece(src, i)
			at := slot(s.rank, peer, src.Length)
			s.putNumber(peer, i, piece, at.part(piece.Offset-src.Offset, piece.Length))
		}
	}
	own, first := source(s.rank), 0
	if asComes {
		first = s.rank
	}
	for i := range s.pieceCount(result.Length) {
		part := s.piece(result, i)
		operand := func(rank int) Span {
			if rank == s.rank {
				return s.piece(own, i)
			}
			came := s.piece(slot(rank, s.rank, result.Length), i)
			s.awaitNumber(rank, i, came)
			return came
		}
		sum := operand(first)
		for rank := first + 1; rank < s.size; rank++ {
			next := operand(rank)
			dst := sum
			switch {
			case first == 0 && rank == s.size-1:
				dst = part
			case first == s.rank && rank == first+1:
				dst = next // since the sum is the own contribution so far
			}
			s.reduce(dst, sum, next)
			sum = dst
		}
		if first > 0 {
			lower := operand(0)
			for rank := 1; rank < first; rank++ {
				s.reduce(lower, lower, operand(rank))
			}
			s.reduce(part, lower, sum)
		}
		done(part)
	}
}

// scatterRing has each block go around the ring once, from the rank behind its own to its
// own, while each rank adds its contribution. It says when a piece of the own block is
// there. It mixes the order: block b is a combination of ranks b+1, b+2, ... and b.
func (s *script) scatterRing(cut blocks, own, result Span, done func(piece Span)) {
	next, previous := s.next(), s.previous()
	room := cut.most()
	s.need((s.size - 1) * room)
	s.expect(3 * (s.size - 1) * s.pieceCount(room))
	slot := func(step, at, length int) Span { return Span{Scratch, step*room + at, length} }
	first := cut.of(own, previous)
	for piece := range s.pieces(first) {
		s.put(next, piece, slot(0, piece.Offset-first.Offset, piece.Length))
	}
	for step := range s.size - 1 {
		block := cut.of(own, (s.rank-2-step+2*s.size)%s.size)
		for piece := range s.pieces(block) {
			at := piece.Offset - block.Offset
			came := slot(step, at, piece.Length)
			s.await(previous, came)
			if step == s.size-2 {
				s.reduce(result.part(at, piece.Length), came, piece)
				done(result.part(at, piece.Length))
				continue
			}
			s.reduce(came, came, piece)
			s.put(next, came, slot(step+1, at, piece.Length))
		}
	}
}

// scatterHalves gives the other half of the ranks what this one has for their blocks, and
// combines what they have for the blocks of this half; then the same within the half. It
// mixes the order of the ranks.
func (s *script) scatterHalves(cut blocks, own, result Span) {
	cuts := halvings(s.rank, s.size, 0)
	sum := own // of the blocks of the part
	for i, c := range cuts {
		start := cut.start(c.whole.low)
		of := func(p part) Span {
			run := cut.run(Span{}, p.low, p.end)
			return sum.part(run.Offset-start, run.Length)
		}
		give, keep := of(c.other), of(c.mine)
		to := c.other.partnerOf(c.mine, s.rank)
		slot := cut.inbox(to, i)
		if s.rank == c.mine.end-1 && c.mine.size() > c.other.size() {
			slot += give.Length // the second that comes there
		}
		for piece := range s.pieces(give) {
			s.put(to, piece, Span{Scratch, slot + piece.Offset - give.Offset, piece.Length})
		}
		partners := c.mine.partners(c.other, s.rank)
		slot = cut.inbox(s.rank, i)
		sum = keep
		for nth, from := range partners {
			dst := Span{Scratch, slot, keep.Length}
			if i == len(cuts)-1 && nth == len(partners)-1 {
				dst = result
			}
			for piece := range s.pieces(sum) {
				at := piece.Offset - sum.Offset
				came := Span{Scratch, slot + nth*keep.Length + at, piece.Length}
				s.await(from, came)
				s.reduce(dst.part(at, piece.Length), piece, came)
			}
			sum = dst
		}
	}
	s.need(cut.inbox(s.rank, len(cuts)))
}

// inbox is where in the Scratch of a rank the slots of a halving are, of which there is
// one for each of those who give to it there.
func (b blocks) inbox(rank, halving int) int {
	at := 0
	whole := part{0, b.size, 0}
	for range halving {
		if whole.size() == 1 {
			break
		}
		c := whole.cut(rank)
		at += c.mine.partnerCount(c.other, rank) * b.run(Span{}, c.mine.low, c.mine.end).Length
		whole = c.mine
	}
	return at
}
