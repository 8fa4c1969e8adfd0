package schedule

// ReduceTo is the plan of a call that combines the length units of each rank, element by
// element, in the root's Output. Contributions stand in Input; at the root, and there
// alone, Options.InPlace has its own in Output. The other ranks have no Output.
//
// The algorithms are [Tree], which needs Options.Commutative, and [Binomial], which keeps
// the order of the ranks and does not use Options.Fanout.
//
// It is not called Reduce because that is an [Action].
func ReduceTo(rank, size, root, length int, o Options) (Plan, error) {
	s, err := CollectiveReduce.begin(rank, size, root, length, o)
	if err != nil {
		return Plan{}, err
	}
	if rank != root {
		s.InPlace = false
	}
	var combine func(piece Span)
	switch s.Algorithm {
	case Tree:
		combine = s.combineTree(root, length)
	case Binomial:
		combine = s.combineHalves(root, length)
	}
	for piece := range s.pieces(s.own(length)) {
		combine(piece)
	}
	return s.plan, nil
}

// combineTree returns what combines a piece of the own contribution with those of the
// children in the tree, and puts it to the parent. Each child has a slot of length units
// in its parent's Scratch. The root has the result in Output.
func (s *script) combineTree(root, length int) func(piece Span) {
	tree := heap{s.size, root, s.fanout()}
	v := tree.virtual(s.rank)
	first, end := tree.children(v)
	s.plan.Scratch += (end - first) * length
	return func(piece Span) {
		sum := piece
		for child := first; child < end; child++ {
			slot := Span{Scratch, (child-first)*length + piece.Offset, piece.Length}
			s.await(tree.rank(child), slot)
			dst := slot
			if v == 0 {
				dst = Span{Output, piece.Offset, piece.Length}
			}
			s.reduce(dst, sum, slot)
			sum = dst
		}
		s.deliver(sum, v == 0)
		if v > 0 {
			parent := tree.parent(v)
			nth := v - (tree.fanout*parent + 1)
			s.put(tree.rank(parent), sum, Span{Scratch, nth*length + piece.Offset, piece.Length})
		}
	}
}

// combineHalves returns what combines a piece of the own contribution with those of the
// ranks of which this one is the holder in a halving, in the order of the ranks, and puts
// it to the holder above. The root has the result in Output.
func (s *script) combineHalves(root, length int) func(piece Span) {
	mine := holdingOf(s.rank, s.size, root)
	s.plan.Scratch += len(mine.given) * length
	return func(piece Span) {
		sum := piece
		// The smallest part is the first to be complete, and the next to the own one.
		for nth := len(mine.given) - 1; nth >= 0; nth-- {
			slot := Span{Scratch, nth*length + piece.Offset, piece.Length}
			s.await(mine.given[nth].holder, slot)
			dst := slot
			if mine.parent < 0 {
				dst = Span{Output, piece.Offset, piece.Length}
			}
			if mine.given[nth].low < s.rank {
				s.reduce(dst, slot, sum)
			} else {
				s.reduce(dst, sum, slot)
			}
			sum = dst
		}
		s.deliver(sum, mine.parent < 0)
		if mine.parent >= 0 {
			s.put(mine.parent, sum, Span{Scratch, mine.nth*length + piece.Offset, piece.Length})
		}
	}
}

// deliver copies the root's sum to Output where nobody else had anything to add.
func (s *script) deliver(sum Span, root bool) {
	if root && sum.Space == Input {
		s.copy(Span{Output, sum.Offset, sum.Length}, sum)
	}
}
