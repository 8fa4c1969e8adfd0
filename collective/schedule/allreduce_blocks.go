package schedule

// These algorithms scatter the sums, a block to each rank, and gather them again. What
// comes into Output in place has been combined from what stood there, so it is free.

// ringAllreduce goes around the ring twice.
func (s *script) ringAllreduce(length int) {
	whole := Span{Output, 0, length}
	cut := blocks{size: s.size, length: length}
	next := s.next()
	s.scatterRing(cut, s.own(length), cut.of(whole, s.rank), func(piece Span) {
		s.put(next, piece, piece)
	})
	s.gatherRing(cut)
}

// pairwiseAllreduce has each rank combine its block of all contributions, and put it to
// all others.
func (s *script) pairwiseAllreduce(length int) {
	whole, own := Span{Output, 0, length}, s.own(length)
	cut := blocks{size: s.size, length: length}
	mine := cut.of(whole, s.rank)
	number := 0
	s.combineAll(func(peer int) Span { return cut.of(own, peer) }, mine, true, func(piece Span) {
		for peer := range s.others() {
			s.putNumber(peer, s.pieceCount(cut.of(own, peer).Length)+number, piece, piece)
		}
		number++
	})
	for peer := range s.others() {
		block := cut.of(whole, peer)
		for i := range s.pieceCount(block.Length) {
			s.awaitNumber(peer, s.pieceCount(mine.Length)+i, s.piece(block, i))
		}
	}
}

// directAllreduce has each rank combine all contributions for itself. In place, others are
// given a copy, since the result may be there before they have it.
func (s *script) directAllreduce(length int) {
	own := s.own(length)
	source := own
	if s.InPlace {
		source = Span{Scratch, (s.size - 1) * length, length}
		s.need(s.size * length)
		s.copy(source, own)
	}
	// All combine all, so brackets must not depend on the rank.
	s.combineAll(func(int) Span { return source }, Span{Output, 0, length}, false, func(Span) {})
}

// rabenseifner scatters and gathers by halves. Halves of the ranks need no rank to deal
// for another, but mix the order. Without Commutative the ranks are folded to a power of
// two.
func (s *script) rabenseifner(length int) {
	whole := Span{Output, 0, length}
	if !s.Commutative {
		s.foldedHalves(length)
		return
	}
	cut := blocks{size: s.size, length: length}
	s.scatterHalves(cut, s.own(length), cut.of(whole, s.rank))
	s.gatherHalves(Output, cut, -1)
}

// foldedHalves exchanges halves with the rank 1 away, quarters with the rank 2 away, and so
// on, where each combines what it keeps; and then all the way back. Neighbours come
// first, so the order of the ranks is kept. What a rank gets back from a peer is what it
// gave to that peer.
func (s *script) foldedHalves(length int) {
	f := fold(s.rank, s.size)
	own, given, whole := s.own(length), Span{Scratch, 0, length}, Span{Output, 0, length}
	if f.even {
		s.giveAndTake(own)
		return
	}
	sum := own
	if f.odd {
		for piece := range s.pieces(given) {
			s.await(s.rank-1, piece)
			s.reduce(piece, piece, own.part(piece.Offset, piece.Length))
		}
		sum = given
	}
	slot := Span{Scratch, min(f.pairs, 1) * length, (length + 1) / 2}
	low, end := 0, length
	var kept, gave []Span // of the whole, in each round
	for round := range f.rounds {
		middle := low + (end-low)/2
		keep, give := whole.part(low, middle-low), whole.part(middle, end-middle)
		if f.lower(round) {
			keep, give = give, keep
		}
		low, end = keep.Offset, keep.Offset+keep.Length
		kept, gave = append(kept, keep), append(gave, give)
		for piece := range s.pieces(give) {
			at := slot.part(piece.Offset-give.Offset, piece.Length)
			s.put(f.peer(round), sum.part(piece.Offset, piece.Length), at)
		}
		for piece := range s.pieces(keep) {
			came := slot.part(piece.Offset-low, piece.Length)
			s.await(f.peer(round), came)
			lower, higher := sum.part(piece.Offset, piece.Length), came
			if f.lower(round) {
				lower, higher = higher, lower
			}
			s.reduce(piece, lower, higher)
		}
		sum = whole
		slot = Span{Scratch, slot.Offset + slot.Length, (slot.Length + 1) / 2}
	}
	s.plan.Scratch = slot.Offset
	for round := f.rounds - 1; round >= 0; round-- {
		for piece := range s.pieces(kept[round]) {
			s.put(f.peer(round), piece, piece)
		}
		for piece := range s.pieces(gave[round]) {
			s.await(f.peer(round), piece)
		}
	}
	if f.odd {
		for piece := range s.pieces(whole) {
			s.put(s.rank-1, piece, piece)
		}
	}
}
