package schedule

// ReduceScatter is the plan of a call that combines what all ranks have, element by
// element, and gives each rank length units of it, in Output. Contributions are size
// times length units in Input, in the order of the ranks. With Options.InPlace they stand
// in Output, which is as long, and the result comes to its beginning.
//
// The algorithms are [Pairwise], which keeps the order of the ranks, and
// [RecursiveHalving] and [Ring], which need Options.Commutative.
func ReduceScatter(rank, size, length int, o Options) (Plan, error) {
	cut, err := evenly(size, length)
	if err != nil {
		return Plan{}, err
	}
	return reduceScatter(rank, cut, o)
}

// ReduceScatterv is ReduceScatter with a count of its own for each rank. All ranks must
// give the same counts.
func ReduceScatterv(rank int, counts []int, o Options) (Plan, error) {
	cut, err := Blocks{Counts: counts}.cut(false)
	if err != nil {
		return Plan{}, err
	}
	return reduceScatter(rank, cut, o)
}

func reduceScatter(rank int, cut blocks, o Options) (Plan, error) {
	s, err := CollectiveReduceScatter.beginLong(rank, cut.size, 0, cut.length, o)
	if err != nil {
		return Plan{}, err
	}
	own := s.own(cut.length)
	result := Span{Output, 0, cut.count(rank)}
	if s.size == 1 {
		s.keep(result.Length)
		return s.plan, nil
	}
	sum := result
	var scatter func()
	slots := 0
	switch s.Algorithm {
	case Pairwise:
		slots = (s.size - 1) * result.Length
		scatter = func() {
			s.combineAll(func(peer int) Span { return cut.of(own, peer) }, sum, true, func(Span) {})
		}
	case RecursiveHalving:
		slots = cut.inbox(rank, rounds(s.size))
		scatter = func() { s.scatterHalves(cut, own, sum) }
	case Ring:
		slots = (s.size - 1) * cut.most()
		scatter = func() { s.scatterRing(cut, own, sum, func(Span) {}) }
	}
	if s.InPlace {
		// Others may still read Output, and the result may lie across a block of it.
		sum = Span{Scratch, slots, result.Length}
		s.need(slots + result.Length)
	}
	scatter()
	if s.InPlace {
		s.settle(result)
		s.copy(result, sum)
	}
	return s.plan, nil
}
