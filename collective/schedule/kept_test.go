package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
)

// What a rank keeps nobody else writes, and the rank reads it nowhere else: whoever has it elsewhere
// carries out the plan as well.
func TestKept(t *testing.T) {
	for _, collective := range schedule.Collectives() {
		for size := 1; size <= 9; size++ {
			for c := range calls(collective, size) {
				kept := make([][]schedule.Span, size)
				for rank := range size {
					plan, err := c.Plan(rank)
					require.NoError(t, err)
					kept[rank] = plan.Kept()
					for i, span := range kept[rank] {
						require.Equal(t, schedule.Output, span.Space)
						require.True(t, i == 0 || kept[rank][i-1].Offset+kept[rank][i-1].Length <= span.Offset, "in order")
						touched := 0
						for _, step := range plan.Steps {
							reads := step.Action == schedule.Put && meet(step.Src, span)
							if step.Action == schedule.Reduce || step.Action == schedule.Copy {
								reads = meet(step.Src, span) || meet(step.Other, span) || meet(step.Dst, span)
							}
							if reads {
								touched++
								require.Equal(t, schedule.Copy, step.Action)
								require.Equal(t, span, step.Dst)
							}
						}
						require.Equal(t, 1, touched, "%+v, rank %d", c, rank)
					}
				}
				for rank := range size {
					plan, err := c.Plan(rank)
					require.NoError(t, err)
					for _, step := range plan.Steps {
						if step.Action != schedule.Put {
							continue
						}
						for _, span := range kept[step.Peer] {
							require.False(t, meet(step.Dst, span), "%+v, rank %d", c, rank)
						}
					}
				}
			}
		}
	}
	// A rank keeps its own block, but where it hands that on from there.
	for algorithm, want := range map[schedule.Algorithm][]schedule.Span{
		schedule.Direct: {{Space: schedule.Output, Offset: 7, Length: 7}}, schedule.RecursiveDoubling: nil,
	} {
		c := schedule.Call{Collective: schedule.CollectiveAllgather, Size: 4, Length: 7}
		c.Algorithm = algorithm
		plan, err := c.Plan(1)
		require.NoError(t, err)
		require.Equal(t, want, plan.Kept(), algorithm.String())
	}
}
