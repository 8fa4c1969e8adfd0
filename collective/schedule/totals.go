package schedule

import "math/bits"

// Totals is what the plans of a call do together, by formulas: they do not look at the plans,
// and take no longer than a few steps for each rank.
type Totals struct {
	// Rounds is the longest chain of puts and signals of which each was begun behind an
	// Await of the one before: how many latencies the call takes. It may be less where
	// a block is empty, since what has no units is not put.
	Rounds int
	// Units is how many units all ranks put together, and Most the most that one of them
	// puts.
	Units, Most int
}

// Call is what the ranks of a collective agree on, apart from counts of their own. Two
// calls that are equal have the same plans.
type Call struct {
	Collective Collective
	Size       int
	// Root is for those that have one, and 0 otherwise.
	Root int
	// Length is that of the function of the collective, and 0 of a barrier.
	Length int
	Options
}

// Plan is what the function of the collective returns.
func (c Call) Plan(rank int) (Plan, error) {
	if err := c.check(); err != nil {
		return Plan{}, err
	}
	switch c.Collective {
	case CollectiveBcast:
		return Bcast(rank, c.Size, c.Root, c.Length, c.Options)
	case CollectiveReduce:
		return ReduceTo(rank, c.Size, c.Root, c.Length, c.Options)
	case CollectiveAllreduce:
		return Allreduce(rank, c.Size, c.Length, c.Options)
	case CollectiveGather:
		return Gather(rank, c.Size, c.Root, c.Length, c.Options)
	case CollectiveScatter:
		return Scatter(rank, c.Size, c.Root, c.Length, c.Options)
	case CollectiveAllgather:
		return Allgather(rank, c.Size, c.Length, c.Options)
	case CollectiveReduceScatter:
		return ReduceScatter(rank, c.Size, c.Length, c.Options)
	case CollectiveAlltoall:
		return Alltoall(rank, c.Size, c.Length, c.Options)
	}
	return Barrier(rank, c.Size, c.Options)
}

// check says what is wrong with a call that its function would not see.
func (c Call) check() error {
	if int(c.Collective) >= len(ways) || len(ways[c.Collective]) == 0 {
		return &ArgumentError{"collective", int(c.Collective), "one of Collectives"}
	}
	rooted := c.Collective == CollectiveBcast || c.Collective == CollectiveReduce ||
		c.Collective == CollectiveGather || c.Collective == CollectiveScatter
	if c.Root != 0 && !rooted {
		return &ArgumentError{"root", c.Root, "0, as there is none"}
	}
	if c.Length != 0 && c.Collective == CollectiveBarrier {
		return &ArgumentError{"length", c.Length, "0, as there is no data"}
	}
	return nil
}

// Check says what is wrong with a call: it is the error of Plan for the ranks that there
// are.
func (c Call) Check() error {
	_, err := c.formula()
	return err
}

func (c Call) formula() (formula, error) {
	if err := c.check(); err != nil {
		return formula{}, err
	}
	cut, err := evenly(c.Size, c.Length)
	if err != nil {
		return formula{}, err
	}
	switch c.Collective {
	case CollectiveBcast, CollectiveReduce, CollectiveAllreduce:
		cut.length = c.Length
	}
	return c.Collective.formula(cut, c.Root, c.Options)
}

// Totals is what the plans of all ranks do together. Its errors are those of Plan. Where
// the ranks are in place does not matter.
func (c Call) Totals() (Totals, error) {
	f, err := c.formula()
	if err != nil {
		return Totals{}, err
	}
	return f.totals(c.Collective), nil
}

// GathervTotals is what the plans of all ranks of Gatherv do together.
func GathervTotals(root int, output Blocks, o Options) (Totals, error) {
	return CollectiveGather.blockTotals(output, true, root, o)
}

// ScattervTotals is what the plans of all ranks of Scatterv do together.
func ScattervTotals(root int, input Blocks, o Options) (Totals, error) {
	return CollectiveScatter.blockTotals(input, false, root, o)
}

// AllgathervTotals is what the plans of all ranks of Allgatherv do together.
func AllgathervTotals(output Blocks, o Options) (Totals, error) {
	return CollectiveAllgather.blockTotals(output, true, 0, o)
}

// ReduceScattervTotals is what the plans of all ranks of ReduceScatterv do together.
func ReduceScattervTotals(counts []int, o Options) (Totals, error) {
	return CollectiveReduceScatter.blockTotals(Blocks{Counts: counts}, false, 0, o)
}

func (c Collective) blockTotals(b Blocks, output bool, root int, o Options) (Totals, error) {
	cut, err := b.cut(output)
	if err != nil {
		return Totals{}, err
	}
	f, err := c.formula(cut, root, o)
	if err != nil {
		return Totals{}, err
	}
	return f.totals(c), nil
}

// formula is a call of which something is asked for that does not take its plans.
type formula struct {
	Options
	// blocks are those of all ranks; of a Bcast, Reduce or Allreduce those that it may cut
	// its length into.
	blocks
	root int
}

func (c Collective) formula(cut blocks, root int, o Options) (formula, error) {
	longest := cut.length // of what Chunk cuts
	switch c {
	case CollectiveGather, CollectiveScatter:
		longest = o.cutLength(cut)
	case CollectiveAlltoall:
		longest = 0
	}
	if err := o.check(cut.size, root, longest); err != nil {
		return formula{}, err
	}
	var err error
	o.Algorithm, err = c.choose(o)
	return formula{o, cut, root}, err
}

func (f formula) totals(c Collective) Totals {
	if c == CollectiveBarrier {
		return Totals{Rounds: rounds(f.size)}
	}
	if f.size == 1 || f.length == 0 {
		return Totals{}
	}
	switch c {
	case CollectiveBcast:
		return f.bcast()
	case CollectiveReduce:
		return f.reduce()
	case CollectiveAllreduce:
		return f.allreduce()
	case CollectiveGather, CollectiveScatter:
		return f.oneAndAll(c == CollectiveScatter)
	case CollectiveAllgather:
		return f.allgather()
	case CollectiveReduceScatter:
		return f.reduceScatter()
	}
	return f.alltoall()
}

// height is how far the deepest rank of a tree is from the root.
func (f formula) height() int {
	return heap{f.size, 0, f.fanout()}.depth(f.size - 1)
}

// halvingHeight is how many puts follow each other from the root to all or back where
// each holder deals with its largest half first, or last: those of the largest half that
// the root does not hold are one more than there are in that.
func (f formula) halvingHeight() int {
	lower, upper := part{0, f.size, f.root}.halve()
	if lower.has(f.root) {
		return bits.Len(uint(upper.size()))
	}
	return bits.Len(uint(lower.size()))
}

func (f formula) bcast() Totals {
	n, length := f.size, f.length
	if f.Algorithm == Tree {
		return Totals{Rounds: f.height(), Units: (n - 1) * length, Most: min(f.fanout(), n-1) * length}
	}
	// Each rank but the root gets each unit once, in one way or another.
	t := Totals{Units: (n - 1) * length}
	depths := make(depths, n)
	for rank := range n {
		units := f.gatherUnits(rank, f.root)
		for _, given := range holdingOf(rank, n, f.root).given {
			units += f.run(Span{}, given.low, given.end).Length
		}
		t.Most = max(t.Most, units)
	}
	depths.hold(part{0, n, f.root}, 0)
	depths.gather(part{0, n, f.root}, true)
	t.Rounds = depths.most()
	return t
}

func (f formula) reduce() Totals {
	t := Totals{Rounds: f.height(), Units: (f.size - 1) * f.length, Most: f.length}
	if f.Algorithm == Binomial {
		t.Rounds = f.halvingHeight()
	}
	return t
}

func (f formula) oneAndAll(scatter bool) Totals {
	if f.Algorithm == Direct {
		t := Totals{Rounds: 1, Units: f.length - f.count(f.root)}
		if scatter {
			t.Most = t.Units
			return t
		}
		for rank := range f.size {
			if rank != f.root {
				t.Most = max(t.Most, f.count(rank))
			}
		}
		return t
	}
	t := Totals{Rounds: f.halvingHeight()}
	for rank := range f.size {
		mine := holdingOf(rank, f.size, f.root)
		up, down := 0, 0
		if mine.parent >= 0 {
			up = f.run(Span{}, mine.low, mine.end).Length
		}
		for _, given := range mine.given {
			down += f.run(Span{}, given.low, given.end).Length
		}
		t.Units += up
		if scatter {
			t.Most = max(t.Most, down)
		} else {
			t.Most = max(t.Most, up)
		}
	}
	return t
}

func (f formula) allgather() Totals {
	t := Totals{Units: (f.size - 1) * f.length, Rounds: rounds(f.size)}
	if f.Algorithm == RecursiveDoubling {
		depths := make(depths, f.size)
		depths.gather(part{0, f.size, 0}, false)
		t.Rounds = depths.most()
	}
	for rank := range f.size {
		units := 0
		switch f.Algorithm {
		case Ring:
			// All but what the next one has itself.
			units = f.length - f.count((rank+1)%f.size)
			t.Rounds = f.size - 1
		case Direct:
			units = (f.size - 1) * f.count(rank)
			t.Rounds = 1
		case Bruck:
			for have := 1; have < f.size; have *= 2 {
				end := rank + min(have, f.size-have)
				units += f.start(min(end, f.size)) - f.start(rank) + f.start(max(end-f.size, 0))
			}
		case RecursiveDoubling:
			units = f.gatherUnits(rank, -1)
		}
		t.Most = max(t.Most, units)
	}
	return t
}

// gatherUnits is how much a rank puts where all gather all by halves.
func (f formula) gatherUnits(rank, root int) int {
	units := 0
	for _, c := range halvings(rank, f.size, root) {
		for _, peer := range c.mine.partners(c.other, rank) {
			if root < 0 || peer != c.whole.holder {
				units += f.run(Span{}, c.mine.low, c.mine.end).Length
			}
		}
	}
	return units
}

func (f formula) reduceScatter() Totals {
	// Each rank gives each unit of the others away once, alone or in a sum.
	t := Totals{Units: (f.size - 1) * f.length}
	for rank := range f.size {
		t.Most = max(t.Most, f.length-f.count(rank))
	}
	switch f.Algorithm {
	case Pairwise:
		t.Rounds = 1
	case Ring:
		t.Rounds = f.size - 1
	case RecursiveHalving:
		depths := make(depths, f.size)
		depths.scatter(part{0, f.size, 0})
		t.Rounds = depths.most()
	}
	return t
}

func (f formula) alltoall() Totals {
	n, block := f.size, f.length/f.size
	if f.Algorithm == Pairwise {
		return Totals{Rounds: 1, Units: (n - 1) * f.length, Most: (n - 1) * block}
	}
	blocks := 0 // that one rank puts: all slots, once for each bit of their numbers
	for slot := range n {
		blocks += bits.OnesCount(uint(slot))
	}
	return Totals{Rounds: rounds(n), Units: n * blocks * block, Most: blocks * block}
}
