package collective

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
)

// A rank plans what it does itself, and not what each of many ranks does: it happens in
// the progress role, at each call of a shape that is new.
func TestPlanIsOfOneRank(t *testing.T) {
	const size = 512
	for _, kind := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(kind) {
			s := &shape{Call: schedule.Call{Collective: kind, Size: size}, element: 8}
			s.Options = schedule.Options{Algorithm: a, Commutative: true}
			if kind != schedule.CollectiveBarrier {
				s.Length = 3
			}
			allocations := testing.AllocsPerRun(1, func() {
				var known plans
				_, err := known.of(s, 5, 0)
				require.NoError(t, err)
			})
			require.Less(t, allocations, float64(size), "%v by %v", kind, a)
		}
	}
}
