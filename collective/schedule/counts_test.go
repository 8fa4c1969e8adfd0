package schedule_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/schedule"
)

// drawCounts draws the lengths of blocks, of which some are empty.
func drawCounts(t *rapid.T, size int) []int {
	return rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3, 7}), size, size).Draw(t, "counts")
}

// drawPlaces draws where blocks begin: one behind the other, or anywhere.
func drawPlaces(t *rapid.T, counts []int) []int {
	if rapid.Bool().Draw(t, "packed") {
		return nil
	}
	places := make([]int, len(counts))
	order := identity(len(counts))
	if rapid.Bool().Draw(t, "mixed") {
		order = rapid.Permutation(order).Draw(t, "order")
	}
	at := 0
	for _, rank := range order {
		at += rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(t, "gap")
		places[rank] = at
		at += counts[rank]
	}
	return places
}

func identity(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func drawOptions(t *rapid.T, collective schedule.Collective) schedule.Options {
	o := schedule.Options{
		Algorithm:   rapid.SampledFrom(schedule.Algorithms(collective)).Draw(t, "algorithm"),
		Fanout:      rapid.IntRange(0, 16).Draw(t, "fan-out"),
		Chunk:       rapid.SampledFrom([]int{0, 1, 2, 7}).Draw(t, "chunk"),
		Commutative: rapid.Bool().Draw(t, "commutative"),
	}
	o.Commutative = o.Commutative || !schedule.KeepsOrder(collective, o.Algorithm)
	return o
}

func drawPlaced(t *rapid.T) placed {
	return rapid.SampledFrom([]placed{nowhere, everywhere, odd}).Draw(t, "in place")
}

// Calls with counts of their own do what those without do, and as much as the formulas
// say.
func TestCounts(t *testing.T) {
	check := func(collective schedule.Collective, plan func(r rows, root int, o schedule.Options, in placed) (call, error), totals func(r rows, root int, o schedule.Options) (schedule.Totals, error)) {
		t.Run(collective.String(), func(t *testing.T) {
			var p prover
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.IntRange(1, 24).Draw(t, "size")
				b := schedule.Blocks{Counts: drawCounts(t, size)}
				if collective != schedule.CollectiveReduceScatter {
					b.Displacements = drawPlaces(t, b.Counts)
				}
				r := rowsOf(b, -1)
				root := rapid.IntRange(0, size-1).Draw(t, "root")
				o, in := drawOptions(t, collective), drawPlaced(t)
				c, err := plan(r, root, o, in)
				require.NoError(t, err)
				got, err := p.prove(c)
				require.NoError(t, err)
				delivered, err := deliver(c, uint64(size))
				require.NoError(t, err)
				require.Equal(t, got, delivered)
				want, err := totals(r, root, o)
				require.NoError(t, err)
				if slices.Contains(r.Counts, 0) {
					require.LessOrEqual(t, got.Rounds, want.Rounds)
					want.Rounds = got.Rounds
				}
				require.Equal(t, want, got)
			})
		})
	}
	check(schedule.CollectiveGather, gatherCall, func(r rows, root int, o schedule.Options) (schedule.Totals, error) {
		return schedule.GathervTotals(root, r.Blocks, o)
	})
	check(schedule.CollectiveScatter, scatterCall, func(r rows, root int, o schedule.Options) (schedule.Totals, error) {
		return schedule.ScattervTotals(root, r.Blocks, o)
	})
	check(schedule.CollectiveAllgather, func(r rows, _ int, o schedule.Options, in placed) (call, error) {
		return allgatherCall(r, o, in)
	}, func(r rows, _ int, o schedule.Options) (schedule.Totals, error) {
		return schedule.AllgathervTotals(r.Blocks, o)
	})
	check(schedule.CollectiveReduceScatter, func(r rows, _ int, o schedule.Options, in placed) (call, error) {
		return reduceScatterCall(r, o, in)
	}, func(r rows, _ int, o schedule.Options) (schedule.Totals, error) {
		return schedule.ReduceScattervTotals(r.Counts, o)
	})
}

// In Alltoallv each pair of ranks has a count of its own, and each rank its own places.
func TestAlltoallv(t *testing.T) {
	var p prover
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 12).Draw(t, "size")
		inPlace := rapid.Bool().Draw(t, "in place")
		inputs, outputs := make([]rows, size), make([]rows, size)
		counts := make([][]int, size) // by sender and receiver
		for rank := range size {
			counts[rank] = drawCounts(t, size)
			for peer := range rank {
				// In place, what comes has the place of what goes.
				if inPlace {
					counts[rank][peer] = counts[peer][rank]
				}
			}
		}
		for rank := range size {
			come := make([]int, size)
			for peer := range size {
				come[peer] = counts[peer][rank]
			}
			outputs[rank] = rowsOf(schedule.Blocks{Counts: come, Displacements: drawPlaces(t, come)}, -1)
			inputs[rank] = rowsOf(schedule.Blocks{Counts: counts[rank], Displacements: drawPlaces(t, counts[rank])}, -1)
			if inPlace {
				inputs[rank] = outputs[rank]
			}
		}
		c, err := planned(size, func(rank int) (schedule.Plan, error) {
			remote := make([]int, size)
			for peer := range size {
				remote[peer] = outputs[peer].at[rank]
				if inPlace {
					remote[peer] = rowsOf(schedule.Blocks{Counts: outputs[peer].Counts}, -1).at[rank]
				}
			}
			return schedule.Alltoallv(rank, inputs[rank].Blocks, outputs[rank].Blocks, remote, schedule.Options{InPlace: inPlace})
		})
		require.NoError(t, err)
		c.once = !inPlace
		for rank := range size {
			c.output[rank], c.want[rank] = make([]value, outputs[rank].end), make([]value, outputs[rank].end)
			c.input[rank] = contributions(rank, 0, inputs[rank].end)
			if inPlace {
				c.input[rank], c.output[rank] = nil, c.input[rank]
			}
			for peer, count := range outputs[rank].Counts {
				copy(c.want[rank][outputs[rank].at[peer]:], contributions(peer, inputs[peer].at[rank], count))
			}
		}
		got, err := p.prove(c)
		require.NoError(t, err)
		delivered, err := deliver(c, 1)
		require.NoError(t, err)
		require.Equal(t, got, delivered)
	})
}
