package schedule

import "iter"

// Gather is the plan of a call that gives the root the length units of each rank, in
// Output, one behind the other in the order of the ranks. Contributions stand in Input;
// at the root, and there alone, Options.InPlace has its own in its place in Output. The
// other ranks have no Output.
//
// The algorithms are [Binomial], and [Direct] for much data, of which alone Options.Chunk cuts what is put.
func Gather(rank, size, root, length int, o Options) (Plan, error) {
	cut, err := evenly(size, length)
	if err != nil {
		return Plan{}, err
	}
	return gather(rank, root, cut, o)
}

// Gatherv is Gather with a count of its own for each rank, and a place of its own in the
// root's Output. All ranks must give the same blocks.
func Gatherv(rank, root int, output Blocks, o Options) (Plan, error) {
	cut, err := output.cut(true)
	if err != nil {
		return Plan{}, err
	}
	return gather(rank, root, cut, o)
}

func gather(rank, root int, cut blocks, o Options) (Plan, error) {
	s, err := CollectiveGather.beginLong(rank, cut.size, root, o.cutLength(cut), o)
	if err != nil {
		return Plan{}, err
	}
	mine := s.holding(root)
	own := Span{Input, 0, cut.count(rank)}
	held := own
	switch {
	case rank == root && !s.InPlace:
		s.copy(cut.in(Output, rank), own)
	case rank != root && mine.size() > 1:
		held = cut.packed(mine.part, mine.low)
		s.plan.Scratch = held.Length
		s.copy(cut.packed(part{low: rank, end: rank + 1}, mine.low), own)
	}
	// The smallest parts are the first to be complete.
	for i := len(mine.given) - 1; i >= 0; i-- {
		given := mine.given[i]
		if rank != root {
			s.awaitWhole(given.holder, cut.packed(given, mine.low))
			continue
		}
		number := 0
		for dst := range s.rootPuts(cut, Output, given) {
			s.awaitNumber(given.holder, number, dst)
			number++
		}
	}
	switch mine.parent {
	case -1:
	case root:
		number, at := 0, 0
		for dst := range s.rootPuts(cut, Output, mine.part) {
			s.putNumber(root, number, held.part(at, dst.Length), dst)
			number++
			at += dst.Length
		}
	default:
		above := holdingOf(mine.parent, s.size, root)
		s.putNumber(mine.parent, 0, held, cut.packed(mine.part, above.low))
	}
	return s.plan, nil
}

// Scatter is the plan of a call that gives each rank length units of the root's Input,
// where they stand one behind the other in the order of the ranks, in Output. At the
// root, and there alone, Options.InPlace leaves its own where they are: it has no Output.
// The other ranks have no Input.
//
// The algorithms are [Binomial], and [Direct] for much data, of which alone Options.Chunk cuts what is put.
func Scatter(rank, size, root, length int, o Options) (Plan, error) {
	cut, err := evenly(size, length)
	if err != nil {
		return Plan{}, err
	}
	return scatter(rank, root, cut, o)
}

// Scatterv is Scatter with a count of its own for each rank, and a place of its own in the
// root's Input. All ranks must give the same blocks.
func Scatterv(rank, root int, input Blocks, o Options) (Plan, error) {
	cut, err := input.cut(false)
	if err != nil {
		return Plan{}, err
	}
	return scatter(rank, root, cut, o)
}

func scatter(rank, root int, cut blocks, o Options) (Plan, error) {
	s, err := CollectiveScatter.beginLong(rank, cut.size, root, o.cutLength(cut), o)
	if err != nil {
		return Plan{}, err
	}
	mine := s.holding(root)
	if rank != root {
		s.awaitScattered(cut, mine, root)
	}
	for _, given := range mine.given {
		// A rank with nobody below has its block where it belongs.
		dst := cut.packed(given, given.low)
		if given.size() == 1 {
			dst.Space = Output
		}
		if rank != root {
			s.putNumber(given.holder, 0, cut.packed(given, mine.low), dst)
			continue
		}
		number, at := 0, 0
		for src := range s.rootPuts(cut, Input, given) {
			s.putNumber(given.holder, number, src, dst.part(at, src.Length))
			number++
			at += src.Length
		}
	}
	result := Span{Output, 0, cut.count(rank)}
	switch {
	case rank == root && !s.InPlace:
		s.copy(result, cut.in(Input, rank))
	case rank != root && mine.size() > 1:
		s.plan.Scratch = cut.packed(mine.part, mine.low).Length
		s.copy(result, cut.packed(part{low: rank, end: rank + 1}, mine.low))
	}
	return s.plan, nil
}

// cutLength is the length of what Chunk cuts of a Gather or a Scatter.
func (o Options) cutLength(cut blocks) int {
	if o.Algorithm != Direct {
		return 0
	}
	return cut.length
}

// rootPuts are the puts of a part from the root, or to it: its runs there, and, if all is direct, the pieces of these.
func (s *script) rootPuts(cut blocks, space Space, p part) iter.Seq[Span] {
	if s.Algorithm != Direct {
		return cut.runs(space, p)
	}
	return func(yield func(Span) bool) {
		for run := range cut.runs(space, p) {
			for piece := range s.pieces(run) {
				if !yield(piece) {
					return
				}
			}
		}
	}
}

// holding is the place of the rank in a halving, or, if all is direct, right under the
// root. Between two ranks of it there are puts in one go only, so that their numbers are
// known.
func (s *script) holding(root int) holding {
	if s.Algorithm == Binomial {
		return holdingOf(s.rank, s.size, root)
	}
	if s.rank != root {
		return holding{part: part{s.rank, s.rank + 1, s.rank}, parent: root}
	}
	h := holding{part: part{0, s.size, root}, parent: -1}
	for peer := range s.others() {
		h.given = append(h.given, part{peer, peer + 1, peer})
	}
	return h
}

// awaitScattered awaits what is to be scattered from this rank on. From the root it comes in as many
// puts as it is runs there.
func (s *script) awaitScattered(cut blocks, mine holding, root int) {
	came := cut.packed(mine.part, mine.low)
	if mine.size() == 1 {
		came.Space = Output
	}
	if mine.parent != root {
		s.awaitWhole(mine.parent, came)
		return
	}
	number, at := 0, 0
	for src := range s.rootPuts(cut, Input, mine.part) {
		s.awaitNumber(root, number, came.part(at, src.Length))
		number++
		at += src.Length
	}
}

// awaitWhole awaits all that a peer puts here, if it is anything.
func (s *script) awaitWhole(peer int, dst Span) {
	if dst.Length > 0 {
		s.awaitNumber(peer, 0, dst)
	}
}
