package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
)

// What a rank is given is awaited once, and nothing else writes there.
func TestGiven(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		for size := 1; size <= 9; size++ {
			for c := range calls(collective, size) {
				for rank := range size {
					plan, err := c.Plan(rank)
					require.NoError(t, err)
					given := plan.Given()
					end := 0
					for _, span := range given {
						require.Equal(t, schedule.Output, span.Space)
						require.LessOrEqual(t, end, span.Offset, "in order")
						end = span.Offset + span.Length
						writes := 0
						for _, step := range plan.Steps {
							switch step.Action {
							case schedule.Await, schedule.Reduce, schedule.Copy:
								if meet(step.Dst, span) {
									writes++
									require.Equal(t, schedule.Await, step.Action, "%+v, rank %d", c, rank)
									require.Equal(t, span, step.Dst)
								}
							}
						}
						require.Equal(t, 1, writes, "%+v, rank %d", c, rank)
					}
				}
			}
		}
	}
	total := func(spans []schedule.Span) (units int) {
		for _, span := range spans {
			units += span.Length
		}
		return units
	}
	const size, rank, length = 5, 2, 30
	for collective, want := range map[schedule.Collective]int{
		schedule.CollectiveBcast: length, schedule.CollectiveScatter: length, schedule.CollectiveGather: 0, schedule.CollectiveReduce: 0,
		schedule.CollectiveAllgather: (size - 1) * length, schedule.CollectiveAlltoall: (size - 1) * length,
		schedule.CollectiveAllreduce: length - length/size,
	} {
		c := schedule.Call{Collective: collective, Size: size, Length: length}
		c.Chunk = 4
		if collective == schedule.CollectiveScatter {
			c.Algorithm = schedule.Direct
		}
		if collective == schedule.CollectiveAllreduce {
			c.Algorithm = schedule.Ring
			c.Commutative = true
		}
		if collective == schedule.CollectiveAlltoall {
			c.Algorithm = schedule.Pairwise
		}
		plan, err := c.Plan(rank)
		require.NoError(t, err)
		require.Equal(t, want, total(plan.Given()), collective.String())
	}
}

func meet(a, b schedule.Span) bool {
	return a.Space == b.Space && a.Offset < b.Offset+b.Length && b.Offset < a.Offset+a.Length
}
