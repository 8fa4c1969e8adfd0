package schedule

// Bcast is the plan of a call that gives the root's length units to all ranks, in Output.
// At the root they stand in Input and are copied to Output; with Options.InPlace they stand
// in Output already. Elsewhere Input is not used, and InPlace does not matter.
//
// The algorithms are [Tree], and [ScatterAllgather] for much data.
func Bcast(rank, size, root, length int, o Options) (Plan, error) {
	s, err := CollectiveBcast.begin(rank, size, root, length, o)
	if err != nil {
		return Plan{}, err
	}
	switch s.Algorithm {
	case Tree:
		s.bcastTree(root, length)
	case ScatterAllgather:
		s.bcastBlocks(root, length)
	}
	if rank == root {
		s.keep(length)
	}
	return s.plan, nil
}

func (s *script) bcastTree(root, length int) {
	whole := Span{Output, 0, length}
	if s.rank == root {
		whole = s.own(length)
	}
	hand := s.handOn(root)
	for piece := range s.pieces(whole) {
		hand(piece)
	}
}

// handOn returns what awaits a piece of Output from the parent in the tree, if there is
// one, and puts it to the Outputs of the children. The root's may be in Input.
func (s *script) handOn(root int) func(piece Span) {
	tree := heap{s.size, root, s.fanout()}
	v := tree.virtual(s.rank)
	first, end := tree.children(v)
	return func(piece Span) {
		if v > 0 {
			s.await(tree.rank(tree.parent(v)), piece)
		}
		for child := first; child < end; child++ {
			s.put(tree.rank(child), piece, Span{Output, piece.Offset, piece.Length})
		}
	}
}

// bcastBlocks scatters blocks of the data, one for each rank, along a halving: whoever
// holds a part of the ranks gets the blocks of that part. Then they are gathered the same
// way back, but by all at once: the ranks of one half put to those of the other what those
// do not have yet. So each unit comes to each rank once.
func (s *script) bcastBlocks(root, length int) {
	cut := blocks{size: s.size, length: length}
	mine := holdingOf(s.rank, s.size, root)
	source := Output
	if s.rank == root {
		source = s.own(length).Space
	} else {
		for piece := range s.pieces(cut.run(Span{Space: Output}, mine.low, mine.end)) {
			s.await(mine.parent, piece)
		}
	}
	for _, given := range mine.given {
		for piece := range s.pieces(cut.run(Span{Space: source}, given.low, given.end)) {
			s.put(given.holder, piece, Span{Output, piece.Offset, piece.Length})
		}
	}
	s.gatherHalves(source, cut, root)
}
