package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
)

// results are what the plans give to each rank.
func results(t *testing.T, p *prover, c call) [][]value {
	t.Helper()
	_, err := p.prove(c)
	require.NoError(t, err)
	all := make([][]value, len(p.ranks))
	for rank := range all {
		for _, u := range p.ranks[rank].space[schedule.Output] {
			all[rank] = append(all[rank], u.value)
		}
	}
	return all
}

// An operator that rounds gives the same bits to all ranks, and the same in every call,
// whatever is in place and however it is cut into pieces.
func TestAllRanksGetTheSameBits(t *testing.T) {
	var p prover
	for size := 1; size <= 33; size += sizeStep {
		for _, algorithm := range schedule.Algorithms(schedule.CollectiveAllreduce) {
			for _, commutative := range []bool{true, false} {
				if !commutative && !schedule.KeepsOrder(schedule.CollectiveAllreduce, algorithm) {
					continue
				}
				var first []value
				for _, chunk := range []int{0, 3} {
					for _, in := range []placed{nowhere, odd, everywhere} {
						c, err := allreduceCall(size, 7, schedule.Options{Algorithm: algorithm, Commutative: commutative, Chunk: chunk}, in)
						require.NoError(t, err)
						for rank, got := range results(t, &p, c) {
							if first == nil {
								first = got
							}
							require.Equal(t, first, got, "%v of %d, rank %d", algorithm, size, rank)
						}
					}
				}
			}
		}
	}
}

// Where operands keep their order, the brackets do not depend on the root.
func TestAllRootsGetTheSameBits(t *testing.T) {
	var p prover
	for size := 1; size <= 33; size += sizeStep {
		var first []value
		for root := range size {
			c, err := reduceCall(size, root, 2, schedule.Options{}, nowhere)
			require.NoError(t, err)
			got := results(t, &p, c)[root]
			if first == nil {
				first = got
			}
			require.Equal(t, first, got, "size %d, root %d", size, root)
		}
	}
}

// Without pieces a plan is as short for much data as for little.
func TestPlansAreShort(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		if collective == schedule.CollectiveBarrier {
			continue
		}
		for _, algorithm := range schedule.Algorithms(collective) {
			for _, size := range []int{2, 7, 64} {
				for rank := range size {
					c := schedule.Call{Collective: collective, Size: size}
					c.Algorithm, c.Commutative = algorithm, true
					c.Length = size
					little, err := c.Plan(rank)
					require.NoError(t, err)
					c.Length = 1 << 30
					much, err := c.Plan(rank)
					require.NoError(t, err)
					require.Len(t, much.Steps, len(little.Steps), "%v %v", collective, algorithm)
					require.LessOrEqual(t, len(much.Steps), 8*size+40)
				}
			}
		}
	}
}
