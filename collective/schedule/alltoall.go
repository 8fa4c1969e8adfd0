package schedule

import (
	"fmt"
	"iter"
)

// Alltoall is the plan of a call that gives each rank length units of each. Input has
// size times length units, those for each rank in the order of the ranks; Output is as long
// and gets those of each rank. With Options.InPlace, which all ranks must choose alike, the
// units for the others stand in Output.
//
// The algorithms are [Pairwise], and [Bruck] for little data. Options.Chunk is not used.
func Alltoall(rank, size, length int, o Options) (Plan, error) {
	cut, err := evenly(size, length)
	if err != nil {
		return Plan{}, err
	}
	s, err := CollectiveAlltoall.beginLong(rank, size, 0, 0, o)
	if err != nil {
		return Plan{}, err
	}
	if s.Algorithm == Bruck {
		s.bruckAlltoall(cut)
		return s.plan, nil
	}
	own := cut.start(rank)
	s.pairwiseAlltoall(cut, cut, func(int) int { return own })
	return s.plan, nil
}

// Alltoallv is Alltoall with a count and a place of its own for each pair of ranks, by
// [Pairwise] alone. input and output are those of this rank; its count for a rank must be
// the one that that rank has for it. remote says for each rank where in that rank's Output
// the block of this rank begins: its output.Displacements for this rank, or with
// Options.InPlace, where blocks come to Scratch first, the sum of its output.Counts for
// the ranks below this one. In place input must be the same as output.
func Alltoallv(rank int, input, output Blocks, remote []int, o Options) (Plan, error) {
	from, err := input.cut(false)
	if err != nil {
		return Plan{}, err
	}
	to, err := output.cut(true)
	if err != nil {
		return Plan{}, err
	}
	switch {
	case from.size != to.size:
		return Plan{}, &ArgumentError{"number of output counts", to.size, fmt.Sprintf("%d as of input", from.size)}
	case len(remote) != from.size:
		return Plan{}, &ArgumentError{"number of remote displacements", len(remote), fmt.Sprintf("%d as of counts", from.size)}
	}
	for peer, at := range remote {
		if at < 0 || at > MaxUnits {
			return Plan{}, &ArgumentError{fmt.Sprintf("remote displacement of rank %d", peer), at, fmt.Sprintf("0 to %d", MaxUnits)}
		}
	}
	s, err := CollectiveAlltoall.beginLong(rank, from.size, 0, 0, o)
	if err != nil {
		return Plan{}, err
	}
	if s.Algorithm != Pairwise {
		return Plan{}, &AlgorithmError{CollectiveAlltoall, s.Algorithm, "pairwise, as counts differ"}
	}
	if from.count(rank) != to.count(rank) {
		return Plan{}, &ArgumentError{fmt.Sprintf("output count of rank %d for itself", rank), to.count(rank), fmt.Sprintf("%d as of input", from.count(rank))}
	}
	s.pairwiseAlltoall(from, to, func(peer int) int { return remote[peer] })
	return s.plan, nil
}

// pairwiseAlltoall puts each block where it belongs. In place, what is there is still for
// others, so blocks come to Scratch, and are copied when those have theirs.
func (s *script) pairwiseAlltoall(input, output blocks, remote func(peer int) int) {
	source, target := Input, Output
	if s.InPlace {
		source, target = Output, Scratch
		s.plan.Scratch = output.length
	} else {
		s.copy(output.in(Output, s.rank), input.in(Input, s.rank))
	}
	s.expect(2 * s.size)
	for peer := range s.others() {
		src := input.in(source, peer)
		s.putNumber(peer, 0, src, Span{target, remote(peer), src.Length})
	}
	for i := 1; i < s.size; i++ {
		// In the order in which they put to this rank.
		if peer := (s.rank + i) % s.size; output.count(peer) > 0 {
			came := output.in(Output, peer)
			if s.InPlace {
				came = output.of(Span{Space: Scratch}, peer)
			}
			s.awaitNumber(peer, 0, came)
		}
	}
	if !s.InPlace {
		return
	}
	settled := false
	for _, p := range []part{{low: 0, end: s.rank}, {low: s.rank + 1, end: s.size}} {
		at := output.start(p.low)
		for dst := range output.runs(Output, p) {
			if !settled {
				s.add(Step{Action: Settle})
				settled = true
			}
			s.copy(dst, Span{Scratch, at, dst.Length})
			at += dst.Length
		}
	}
}

// bruckAlltoall hands blocks on by way of other ranks. Slot i of Scratch is for the rank i
// away, wherever its block is from. In the round of bit k, slots whose number has that bit
// go to the rank 2^k away, which has them in the same slots; so after the last round slot
// i has what the rank i before has for this one. What is put is packed beforehand, and
// unpacked afterwards; each round has rooms of its own for that. The last one has a
// single run of slots, which needs neither.
func (s *script) bruckAlltoall(cut blocks) {
	n := cut.most()
	space, tables := Input, rounds(s.size)
	if s.InPlace {
		space = Output
	}
	block := func(rank, count int) Span { return Span{space, rank * n, count * n} }
	slot := func(i, count int) Span { return Span{Scratch, i * n, count * n} }
	if !s.InPlace {
		s.copy(Span{Output, s.rank * n, n}, block(s.rank, 1))
	}
	if s.size == 1 || n == 0 {
		return
	}
	s.copy(slot(1, s.size-1-s.rank), block(s.rank+1, s.size-1-s.rank))
	s.copy(slot(s.size-s.rank, s.rank), block(0, s.rank))
	s.expect(4 * s.size)
	room := s.size // the next that is free
	for round := range tables {
		distance := 1 << round
		to, from := (s.rank+distance)%s.size, (s.rank-distance+s.size)%s.size
		count := 0
		for first := range bitRuns(s.size, distance) {
			count += min(distance, s.size-first)
		}
		came := slot(room, count)
		if round == tables-1 {
			s.put(to, slot(distance, count), came)
			s.await(from, came)
			for i := 1; i < s.size; i++ {
				src := slot(i, 1)
				if i >= distance {
					src = came.part((i-distance)*n, n)
				}
				s.copy(Span{Output, (s.rank - i + s.size) % s.size * n, n}, src)
			}
			s.plan.Scratch = came.Offset + came.Length
			return
		}
		packed := slot(room+count, count)
		room += 2 * count
		at := 0
		for first := range bitRuns(s.size, distance) {
			run := slot(first, min(distance, s.size-first))
			s.copy(packed.part(at, run.Length), run)
			at += run.Length
		}
		s.put(to, packed, came)
		s.await(from, came)
		at = 0
		for first := range bitRuns(s.size, distance) {
			run := slot(first, min(distance, s.size-first))
			s.copy(run, came.part(at, run.Length))
			at += run.Length
		}
	}
}

// bitRuns yields where the runs of numbers below size begin that have the bit set.
func bitRuns(size, bit int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for first := bit; first < size; first += 2 * bit {
			if !yield(first) {
				return
			}
		}
	}
}
