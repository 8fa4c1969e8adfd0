package schedule

// MostScratch is the longest Plan.Scratch of any rank, where none is in place, by a formula:
// it does not look at the plans. Its errors are those of Plan.
func (c Call) MostScratch() (int, error) {
	f, err := c.formula()
	if err != nil || f.size == 1 || f.length == 0 {
		return 0, err
	}
	switch c.Collective {
	case CollectiveReduce:
		return f.slots(f.Algorithm == Tree) * f.length, nil
	case CollectiveAllreduce:
		return f.allreduceScratch(), nil
	case CollectiveGather, CollectiveScatter:
		return f.heldScratch(), nil
	case CollectiveReduceScatter:
		if f.Algorithm == RecursiveHalving {
			return f.mostInbox(), nil
		}
		return (f.size - 1) * f.most(), nil
	case CollectiveAlltoall:
		return f.alltoallScratch(), nil
	}
	return 0, nil
}

// slots is how many ranks put their sums to the one to which most do.
func (f formula) slots(tree bool) int {
	if tree {
		return min(f.fanout(), f.size-1)
	}
	return len(halvings(f.root, f.size, f.root))
}

func (f formula) allreduceScratch() int {
	d := fold(0, f.size)
	given := min(d.pairs, 1) * f.length // of an odd rank, by the even one
	switch f.Algorithm {
	case RecursiveDoubling:
		return given + d.rounds*f.length
	case ReduceBcast:
		return f.slots(f.Commutative) * f.length
	case Direct:
		return (f.size - 1) * f.length
	case Ring, Pairwise:
		return (f.size - 1) * f.most()
	}
	if f.Commutative {
		return f.mostInbox()
	}
	slots, slot := 0, f.length
	for range d.rounds {
		slot = (slot + 1) / 2
		slots += slot
	}
	return given + slots
}

// mostInbox is the most that comes to a rank where the result is scattered by halves.
func (f formula) mostInbox() int {
	most := 0
	for rank := range f.size {
		most = max(most, f.inbox(rank, rounds(f.size)))
	}
	return most
}

// heldScratch is for the largest part of the ranks that another than the root holds. A rank
// that holds its own block only has it where it belongs.
func (f formula) heldScratch() int {
	lower, upper := part{0, f.size, f.root}.halve()
	held := lower
	if lower.has(f.root) {
		held = upper
	}
	if f.Algorithm == Direct || held.size() == 1 {
		return 0
	}
	return f.run(Span{}, held.low, held.end).Length
}

// alltoallScratch is, of Bruck, a slot for each rank, and in each round one for each that
// comes and, but for the last round, one for each that is packed.
func (f formula) alltoallScratch() int {
	if f.Algorithm == Pairwise {
		return 0
	}
	slots, last := f.size, 0
	for distance := 1; distance < f.size; distance *= 2 {
		last = 0
		for first := range bitRuns(f.size, distance) {
			last += min(distance, f.size-first)
		}
		slots += 2 * last
	}
	return (slots - last) * f.most()
}

// Targeted says whether other ranks put to the Output of a rank, where none is in place, by
// a formula. Its errors are those of Plan.
func (c Call) Targeted(rank int) (bool, error) {
	f, err := c.formula()
	if err == nil {
		err = checkRank(rank, c.Size)
	}
	if err != nil || f.size == 1 || f.length == 0 {
		return false, err
	}
	switch c.Collective {
	case CollectiveBcast:
		return rank != f.root, nil
	case CollectiveAllreduce:
		return f.isGivenResults(rank), nil
	case CollectiveGather:
		return rank == f.root, nil
	case CollectiveScatter:
		return rank != f.root && (f.Algorithm == Direct || holdingOf(rank, f.size, f.root).size() == 1), nil
	case CollectiveAllgather:
		return true, nil
	case CollectiveAlltoall:
		return f.Algorithm == Pairwise, nil
	}
	return false, nil
}

// isGivenResults says whether a rank of an Allreduce does not combine all of the result
// itself.
func (f formula) isGivenResults(rank int) bool {
	d := fold(rank, f.size)
	switch {
	case f.Algorithm == Direct:
		return false
	case f.Algorithm == ReduceBcast:
		return rank != 0
	case f.Algorithm == RecursiveDoubling:
		return d.even
	case f.Algorithm == Rabenseifner && !f.Commutative:
		kept := f.length
		for round := range d.rounds {
			kept = (kept + d.rank>>round&1) / 2
		}
		return d.even || kept < f.length
	}
	return f.count(rank) < f.length
}
