package schedule_test

import (
	"slices"

	"github.com/weft-go/weft/collective/schedule"
)

// planned is the plans of all ranks, and an empty call for them.
func planned(size int, plan func(rank int) (schedule.Plan, error)) (call, error) {
	c := call{
		plans: make([]schedule.Plan, size),
		input: make([][]value, size), output: make([][]value, size), want: make([][]value, size),
	}
	for rank := range size {
		var err error
		if c.plans[rank], err = plan(rank); err != nil {
			return c, err
		}
	}
	return c, nil
}

// The ranks of a call that are in place. The options of a rank say it.
type placed func(rank int) bool

func everywhere(int) bool { return true }

func nowhere(int) bool { return false }

func odd(rank int) bool { return rank%2 == 1 }

func (p placed) options(o schedule.Options, rank int) schedule.Options {
	o.InPlace = p(rank)
	return o
}

func barrierCall(size int, o schedule.Options) (call, error) {
	c, err := planned(size, func(rank int) (schedule.Plan, error) { return schedule.Barrier(rank, size, o) })
	c.together = true
	return c, err
}

func bcastCall(size, root, length int, o schedule.Options, in placed) (call, error) {
	c, err := planned(size, func(rank int) (schedule.Plan, error) {
		return schedule.Bcast(rank, size, root, length, in.options(o, rank))
	})
	c.once = true
	for rank := range size {
		c.output[rank] = make([]value, length)
		c.want[rank] = contributions(root, 0, length)
	}
	if in(root) {
		c.output[root] = contributions(root, 0, length)
	} else {
		c.input[root] = contributions(root, 0, length)
	}
	return c, err
}

func reduceCall(size, root, length int, o schedule.Options, in placed) (call, error) {
	c, err := planned(size, func(rank int) (schedule.Plan, error) {
		return schedule.ReduceTo(rank, size, root, length, in.options(o, rank))
	})
	c.ordered = !o.Commutative
	for rank := range size {
		c.input[rank] = contributions(rank, 0, length)
	}
	c.output[root] = make([]value, length)
	if in(root) {
		c.input[root], c.output[root] = nil, c.input[root]
	}
	c.want[root] = folded(size, 0, length)
	return c, err
}

func allreduceCall(size, length int, o schedule.Options, in placed) (call, error) {
	c, err := planned(size, func(rank int) (schedule.Plan, error) {
		return schedule.Allreduce(rank, size, length, in.options(o, rank))
	})
	c.ordered = !o.Commutative
	want := folded(size, 0, length)
	for rank := range size {
		c.input[rank], c.output[rank] = contributions(rank, 0, length), make([]value, length)
		if in(rank) {
			c.input[rank], c.output[rank] = nil, c.input[rank]
		}
		c.want[rank] = want
	}
	return c, err
}

// rows are the blocks of the calls with one block for each rank: where they are in the
// space of the caller that has them all.
type rows struct {
	schedule.Blocks
	size  int
	equal int // the count of all, or -1 for the v-form
	at    []int
	end   int // where the last of them ends
}

func rowsOf(b schedule.Blocks, equal int) rows {
	r := rows{Blocks: b, size: len(b.Counts), equal: equal, at: b.Displacements}
	if r.at == nil {
		at := 0
		for _, count := range b.Counts {
			r.at = append(r.at, at)
			at += count
		}
	}
	for rank, count := range b.Counts {
		r.end = max(r.end, r.at[rank]+count)
	}
	return r
}

// equalRows are as many blocks of the same length as there are ranks.
func equalRows(size, length int) rows {
	return rowsOf(schedule.Blocks{Counts: slices.Repeat([]int{length}, size)}, length)
}

// spread is a space that has what each rank contributes in the place of its block.
func (r rows) spread() []value {
	all := make([]value, r.end)
	for rank, count := range r.Counts {
		copy(all[r.at[rank]:], contributions(rank, 0, count))
	}
	return all
}

func gatherCall(r rows, root int, o schedule.Options, in placed) (call, error) {
	c, err := planned(r.size, func(rank int) (schedule.Plan, error) {
		if r.equal >= 0 {
			return schedule.Gather(rank, r.size, root, r.equal, in.options(o, rank))
		}
		return schedule.Gatherv(rank, root, r.Blocks, in.options(o, rank))
	})
	c.once = true
	for rank, count := range r.Counts {
		c.input[rank] = contributions(rank, 0, count)
	}
	c.output[root], c.want[root] = make([]value, r.end), r.spread()
	if in(root) {
		copy(c.output[root][r.at[root]:], c.input[root])
		c.input[root] = nil
	}
	return c, err
}

func scatterCall(r rows, root int, o schedule.Options, in placed) (call, error) {
	c, err := planned(r.size, func(rank int) (schedule.Plan, error) {
		if r.equal >= 0 {
			return schedule.Scatter(rank, r.size, root, r.equal, in.options(o, rank))
		}
		return schedule.Scatterv(rank, root, r.Blocks, in.options(o, rank))
	})
	c.once = true
	c.input[root] = r.spread()
	for rank, count := range r.Counts {
		if rank != root || !in(root) {
			c.output[rank], c.want[rank] = make([]value, count), contributions(rank, 0, count)
		}
	}
	return c, err
}

func allgatherCall(r rows, o schedule.Options, in placed) (call, error) {
	c, err := planned(r.size, func(rank int) (schedule.Plan, error) {
		if r.equal >= 0 {
			return schedule.Allgather(rank, r.size, r.equal, in.options(o, rank))
		}
		return schedule.Allgatherv(rank, r.Blocks, in.options(o, rank))
	})
	c.once = true
	want := r.spread()
	for rank, count := range r.Counts {
		c.input[rank], c.output[rank], c.want[rank] = contributions(rank, 0, count), make([]value, len(want)), want
		if in(rank) {
			copy(c.output[rank][r.at[rank]:], c.input[rank])
			c.input[rank] = nil
		}
	}
	return c, err
}

func reduceScatterCall(r rows, o schedule.Options, in placed) (call, error) {
	c, err := planned(r.size, func(rank int) (schedule.Plan, error) {
		if r.equal >= 0 {
			return schedule.ReduceScatter(rank, r.size, r.equal, in.options(o, rank))
		}
		return schedule.ReduceScatterv(rank, r.Counts, in.options(o, rank))
	})
	c.ordered = !o.Commutative
	sums := folded(r.size, 0, r.end)
	for rank, count := range r.Counts {
		c.input[rank], c.output[rank] = contributions(rank, 0, r.end), make([]value, count)
		c.want[rank] = sums[r.at[rank]:][:count]
		if in(rank) {
			c.input[rank], c.output[rank] = nil, c.input[rank]
			c.want[rank] = append(append([]value(nil), c.want[rank]...), make([]value, r.end-count)...)
		}
	}
	return c, err
}

// alltoallCall has all ranks in place where the first is.
func alltoallCall(size, length int, o schedule.Options, given placed) (call, error) {
	in := placed(everywhere)
	if !given(0) {
		in = nowhere
	}
	c, err := planned(size, func(rank int) (schedule.Plan, error) {
		return schedule.Alltoall(rank, size, length, in.options(o, rank))
	})
	c.once = !in(0)
	for rank := range size {
		c.input[rank], c.output[rank] = contributions(rank, 0, size*length), make([]value, size*length)
		if in(rank) {
			c.input[rank], c.output[rank] = nil, c.input[rank]
		}
		for from := range size {
			c.want[rank] = append(c.want[rank], contributions(from, rank*length, length)...)
		}
	}
	return c, err
}
