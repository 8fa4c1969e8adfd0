package collective

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Each call is counted once by its kind, where it ends well, where it fails, and where there
// are no calls any more; the counts stay when all is closed.
func TestStats(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := openFor(t, provider, 2)
		ctx := deadline(t)
		require.Zero(t, StatsOf(worlds[0]))
		everywhere(t, worlds, func(_ int, c *comm.Comm) error {
			for range 3 {
				if err := Barrier(ctx, c); err != nil {
					return err
				}
			}
			return Allreduce(ctx, c, make([]int64, 10), make([]int64, 10), operator.Sum[int64]())
		})
		var want Stats
		if worlds[0].Reactor().SameHost() {
			want.Neighbours = 1
		}
		want.Calls[schedule.CollectiveBarrier] = CallStats{Begun: 3, Done: 3}
		want.Calls[schedule.CollectiveAllreduce] = CallStats{Begun: 1, Done: 1, InputBytes: 80}
		require.Equal(t, want, StatsOf(worlds[0]))
		require.Equal(t, want, StatsOf(worlds[1]))

		// One rank waits, and gives up.
		request, err := Ibarrier(worlds[0])
		require.NoError(t, err)
		want.Calls[schedule.CollectiveBarrier].Begun++
		require.Equal(t, want, StatsOf(worlds[0]))
		given, giveUp := context.WithCancel(ctx)
		giveUp()
		require.ErrorIs(t, Allreduce(given, worlds[0], make([]int64, 10), make([]int64, 10), operator.Sum[int64]()), context.Canceled)
		require.ErrorIs(t, request.Wait(ctx), context.Canceled)
		require.Error(t, Barrier(ctx, worlds[0]))
		want.Calls[schedule.CollectiveBarrier] = CallStats{Begun: 5, Done: 3, Failed: 2}
		want.Calls[schedule.CollectiveAllreduce] = CallStats{Begun: 2, Done: 1, Failed: 1, InputBytes: 80}
		got := StatsOf(worlds[0])
		require.Equal(t, want, got)
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return c.Close() })
		require.Equal(t, got, StatsOf(worlds[0]))
	})
}
