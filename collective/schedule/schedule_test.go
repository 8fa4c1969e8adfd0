package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
)

// callOf is what the ranks give to a call and what they must get.
func callOf(c schedule.Call, in placed) (call, error) {
	switch c.Collective {
	case schedule.CollectiveBcast:
		return bcastCall(c.Size, c.Root, c.Length, c.Options, in)
	case schedule.CollectiveReduce:
		return reduceCall(c.Size, c.Root, c.Length, c.Options, in)
	case schedule.CollectiveAllreduce:
		return allreduceCall(c.Size, c.Length, c.Options, in)
	case schedule.CollectiveGather:
		return gatherCall(equalRows(c.Size, c.Length), c.Root, c.Options, in)
	case schedule.CollectiveScatter:
		return scatterCall(equalRows(c.Size, c.Length), c.Root, c.Options, in)
	case schedule.CollectiveAllgather:
		return allgatherCall(equalRows(c.Size, c.Length), c.Options, in)
	case schedule.CollectiveReduceScatter:
		return reduceScatterCall(equalRows(c.Size, c.Length), c.Options, in)
	case schedule.CollectiveAlltoall:
		return alltoallCall(c.Size, c.Length, c.Options, in)
	}
	return barrierCall(c.Size, c.Options)
}

// requireProof proves that the plans of a call keep all rules and give what is wanted, and
// do as much as the formulas say.
func (p *prover) requireProof(t *testing.T, c schedule.Call, in placed) {
	t.Helper()
	given, err := callOf(c, in)
	require.NoError(t, err, "%+v", c)
	got, err := p.prove(given)
	require.NoError(t, err, "%+v", c)
	want, err := c.Totals()
	require.NoError(t, err)
	if wholes(c.Collective) && c.Length < c.Size {
		require.LessOrEqual(t, got.Rounds, want.Rounds, "%+v", c)
		want.Rounds = got.Rounds
	}
	require.Equal(t, want, got, "%+v", c)
}

func TestPlans(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		t.Run(collective.String(), func(t *testing.T) {
			t.Parallel()
			var p prover
			for size := 1; size <= 64; size++ {
				for c, in := range calls(collective, size) {
					p.requireProof(t, c, in)
				}
			}
		})
	}
}
