package schedule_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/schedule"
)

func TestArguments(t *testing.T) {
	plan := func(rank int, c schedule.Call) error {
		_, err := c.Plan(rank)
		return err
	}
	call := func(size, root, length int, o schedule.Options) schedule.Call {
		return schedule.Call{Collective: schedule.CollectiveBcast, Size: size, Root: root, Length: length, Options: o}
	}
	inPieces := func(algorithm schedule.Algorithm) schedule.Call {
		return schedule.Call{Collective: schedule.CollectiveGather, Size: 4, Length: 1 << 30, Options: schedule.Options{Algorithm: algorithm, Chunk: 100}}
	}
	totals := func(c schedule.Call) error {
		_, err := c.Totals()
		return err
	}
	v := func(counts, places []int) error {
		_, err := schedule.Allgatherv(0, schedule.Blocks{Counts: counts, Displacements: places}, schedule.Options{})
		return err
	}
	all := func(input, output, remote []int) error {
		_, err := schedule.Alltoallv(0, schedule.Blocks{Counts: input}, schedule.Blocks{Counts: output}, remote, schedule.Options{})
		return err
	}
	tests := map[string]struct {
		err        error
		argument   string
		value      int
		whatsRight string
	}{
		"rank -1":           {plan(-1, call(4, 0, 1, schedule.Options{})), "rank", -1, "0 to 3"},
		"rank 4 of 4":       {plan(4, call(4, 0, 1, schedule.Options{})), "rank", 4, "0 to 3"},
		"size 0":            {plan(0, call(0, 0, 1, schedule.Options{})), "size", 0, "1 to 65536"},
		"size too large":    {plan(0, call(math.MaxInt, 0, 1, schedule.Options{})), "size", math.MaxInt, "1 to 65536"},
		"root -1":           {plan(0, call(4, -1, 1, schedule.Options{})), "root", -1, "0 to 3"},
		"root 4 of 4":       {plan(0, call(4, 4, 1, schedule.Options{})), "root", 4, "0 to 3"},
		"length -1":         {plan(0, call(4, 0, -1, schedule.Options{})), "length", -1, "0 to 2199023255552"},
		"length too large":  {plan(0, call(4, 0, math.MaxInt, schedule.Options{})), "length", math.MaxInt, "0 to 2199023255552"},
		"fan-out -1":        {plan(0, call(4, 0, 1, schedule.Options{Fanout: -1})), "fan-out", -1, "at least 1, or 0 for 2"},
		"chunk -1":          {plan(0, call(4, 0, 1, schedule.Options{Chunk: -1})), "chunk", -1, "at least 1, or 0 for none"},
		"chunk too small":   {plan(0, call(4, 0, 1<<30, schedule.Options{Chunk: 100})), "chunk", 100, "at least 16384 for 1073741824 units"},
		"chunk of direct":   {plan(1, inPieces(schedule.Direct)), "chunk", 100, "at least 65536 for 4294967296 units"},
		"chunk of totals":   {totals(inPieces(schedule.Direct)), "chunk", 100, "at least 65536 for 4294967296 units"},
		"no collective":     {plan(0, schedule.Call{Size: 1}), "collective", 0, "one of Collectives"},
		"root of none":      {plan(0, schedule.Call{Collective: schedule.CollectiveAllreduce, Size: 4, Root: 1}), "root", 1, "0, as there is none"},
		"length of none":    {plan(0, schedule.Call{Collective: schedule.CollectiveBarrier, Size: 4, Length: 1}), "length", 1, "0, as there is no data"},
		"no counts":         {v(nil, nil), "number of counts", 0, "1 to 65536"},
		"count -1":          {v([]int{1, -1}, nil), "count of rank 1", -1, "0 to 4398046511104"},
		"counts too large":  {v([]int{1, 1 << 43}, nil), "count of rank 1", 1 << 43, "0 to 4398046511104"},
		"few displacements": {v([]int{1, 1}, []int{0}), "number of displacements", 1, "none, or 2 as of counts"},
		"displacement -1":   {v([]int{1, 1}, []int{0, -1}), "displacement of rank 1", -1, "0 to 8796093022208"},
		"overlap":           {v([]int{2, 0, 2}, []int{1, 1, 0}), "displacement of rank 0", 1, "at least 2, where the block of rank 2 ends"},
		"fewer outputs":     {all([]int{1, 1}, []int{1}, []int{0, 0}), "number of output counts", 1, "2 as of input"},
		"few remotes":       {all([]int{1, 1}, []int{1, 1}, []int{0}), "number of remote displacements", 1, "2 as of counts"},
		"remote -1":         {all([]int{1, 1}, []int{1, 1}, []int{0, -1}), "remote displacement of rank 1", -1, "0 to 8796093022208"},
		"own counts":        {all([]int{1, 1}, []int{2, 1}, []int{0, 0}), "output count of rank 0 for itself", 2, "1 as of input"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var argument *schedule.ArgumentError
			require.ErrorAs(t, test.err, &argument)
			require.Equal(t, schedule.ArgumentError{Name: test.argument, Value: test.value, Want: test.whatsRight}, *argument)
			require.ErrorContains(t, test.err, test.argument)
			require.ErrorContains(t, test.err, test.whatsRight)
		})
	}
	require.NoError(t, v([]int{2, 0, 2}, []int{2, 3, 0}), "an empty block may be anywhere")
	for _, whole := range []schedule.Algorithm{schedule.Default, schedule.Binomial} {
		require.NoError(t, plan(1, inPieces(whole)), "what is not cut may be of any length")
		require.NoError(t, totals(inPieces(whole)))
	}
}

func TestAlgorithmErrors(t *testing.T) {
	var algorithm *schedule.AlgorithmError
	_, err := schedule.Bcast(0, 2, 0, 1, schedule.Options{Algorithm: schedule.Ring})
	require.ErrorAs(t, err, &algorithm)
	require.Equal(t, schedule.AlgorithmError{Collective: schedule.CollectiveBcast, Algorithm: schedule.Ring, Want: "tree or scatter-allgather"}, *algorithm)
	require.EqualError(t, err, "schedule: bcast by ring, want tree or scatter-allgather")

	_, err = schedule.Allreduce(0, 2, 1, schedule.Options{Algorithm: schedule.Ring})
	require.EqualError(t, err, "schedule: allreduce by ring, want an operator that is commutative, or another algorithm")
	_, err = schedule.Allreduce(0, 2, 1, schedule.Options{Algorithm: schedule.Ring, Commutative: true})
	require.NoError(t, err)
	_, err = schedule.ReduceTo(0, 2, 0, 1, schedule.Options{Algorithm: 200})
	require.EqualError(t, err, "schedule: reduce by unknown algorithm 200, want tree or binomial")
	_, err = schedule.Alltoallv(0, schedule.Blocks{Counts: []int{1}}, schedule.Blocks{Counts: []int{1}}, []int{0}, schedule.Options{Algorithm: schedule.Bruck})
	require.EqualError(t, err, "schedule: alltoall by bruck, want pairwise, as counts differ")
}

// Without a choice, an algorithm is chosen that keeps the order where it must.
func TestDefaults(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		for _, commutative := range []bool{true, false} {
			c := schedule.Call{Collective: collective, Size: 5}
			c.Commutative = commutative
			chosen, err := c.Plan(3)
			require.NoError(t, err)
			for _, a := range schedule.Algorithms(collective) {
				if c.Algorithm == schedule.Default && (commutative || schedule.KeepsOrder(collective, a)) {
					c.Algorithm = a
				}
			}
			same, err := c.Plan(3)
			require.NoError(t, err)
			require.Equal(t, same, chosen, "%v, %v", collective, commutative)
		}
	}
	with, err := schedule.Bcast(0, 9, 0, 1, schedule.Options{Fanout: 2})
	require.NoError(t, err)
	without, err := schedule.Bcast(0, 9, 0, 1, schedule.Options{})
	require.NoError(t, err)
	require.Equal(t, with, without, "fan-out 2")
}

func TestNames(t *testing.T) {
	names := map[string]bool{}
	for _, c := range schedule.Collectives() {
		parsed, err := schedule.ParseCollective(c.String())
		require.NoError(t, err)
		require.Equal(t, c, parsed)
		require.NotEmpty(t, schedule.Algorithms(c))
		for _, a := range schedule.Algorithms(c) {
			parsed, err := schedule.ParseAlgorithm(a.String())
			require.NoError(t, err)
			require.Equal(t, a, parsed)
			names[a.String()] = true
		}
	}
	require.Contains(t, names, "recursive-doubling")
	require.Len(t, schedule.Collectives(), 9)
	require.Empty(t, schedule.Algorithms(0))
	require.Empty(t, schedule.Algorithms(100))
	require.False(t, schedule.KeepsOrder(100, schedule.Ring))
	parsed, err := schedule.ParseAlgorithm("default")
	require.NoError(t, err)
	require.Equal(t, schedule.Default, parsed)

	var name *schedule.NameError
	_, err = schedule.ParseAlgorithm("Ring")
	require.ErrorAs(t, err, &name)
	require.Equal(t, "Ring", name.Name)
	require.ErrorContains(t, err, "recursive-doubling")
	_, err = schedule.ParseCollective("")
	require.ErrorAs(t, err, &name)
	require.EqualError(t, err, `schedule: "", want one of barrier, bcast, reduce, allreduce, gather, scatter, allgather, reduce-scatter, alltoall`)
	require.Equal(t, "unknown collective 100", schedule.Collective(100).String())
	require.Equal(t, "put", schedule.Put.String())
	require.Equal(t, "unknown action", schedule.Action(100).String())
	require.Equal(t, "scratch", schedule.Scratch.String())
	require.Equal(t, "unknown space", schedule.Space(100).String())
}

// Whatever the arguments, there is a plan or an error, and no plan goes beyond what its
// peers have or begins with what is not there. Rank and size are small, so that plans are.
func TestWhateverTheArguments(t *testing.T) {
	odds := rapid.OneOf(rapid.IntRange(-3, 20), rapid.SampledFrom([]int{math.MinInt, math.MaxInt, 1 << 48, 1<<62 + 1}))
	rapid.Check(t, func(t *rapid.T) {
		c := schedule.Call{
			Collective: schedule.Collective(rapid.IntRange(0, 11).Draw(t, "collective")),
			Size:       rapid.IntRange(-1, 20).Draw(t, "size"),
			Root:       odds.Draw(t, "root"),
			Length:     odds.Draw(t, "length"),
		}
		c.Options = schedule.Options{
			Fanout: odds.Draw(t, "fan-out"), Chunk: odds.Draw(t, "chunk"),
			Algorithm:   schedule.Algorithm(rapid.IntRange(0, 14).Draw(t, "algorithm")),
			Commutative: rapid.Bool().Draw(t, "commutative"), InPlace: rapid.Bool().Draw(t, "in place"),
		}
		rank := odds.Draw(t, "rank")
		plan, err := c.Plan(rank)
		if rank >= 0 && rank < c.Size {
			require.Equal(t, err, c.Check())
		}
		if err != nil {
			var argument *schedule.ArgumentError
			var algorithm *schedule.AlgorithmError
			require.True(t, errors.As(err, &argument) || errors.As(err, &algorithm), "%v", err)
			return
		}
		_, err = c.Totals()
		require.NoError(t, err)
		require.GreaterOrEqual(t, plan.Scratch, 0)
		for _, step := range plan.Steps {
			for _, span := range []schedule.Span{step.Src, step.Other, step.Dst} {
				require.GreaterOrEqual(t, span.Offset, 0)
				require.GreaterOrEqual(t, span.Length, 0)
			}
		}
	})
}

func TestHas(t *testing.T) {
	for c := range schedule.Collective(len(schedule.Collectives()) + 2) {
		require.Equal(t, slices.Contains(schedule.Collectives(), c), schedule.Known(c))
		for a := range schedule.Provider + 2 {
			require.Equal(t, slices.Contains(schedule.Algorithms(c), a), schedule.Has(c, a), "%v by %v", c, a)
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { schedule.Has(schedule.CollectiveAllreduce, schedule.Ring) }))
}
