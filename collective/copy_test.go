package collective

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// More than the caches hold is copied past them, and comes as it was.
func TestCopiesPastTheCaches(t *testing.T) {
	const size, n = 3, leastPast/8 + 5
	onShm(t, func(t *testing.T) {
		worlds, _ := neighbours(t, size)
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			ctx, all, sum := deadline(t), make([]int64, size*n), make([]int64, n)
			mine, first := operand(rank, 0, n), operand(rank, 0, n)
			err := errors.Join(Allgather(ctx, c, mine, all), Allreduce(ctx, c, mine, sum, operator.Sum[int64]()), Bcast(ctx, c, first, 0))
			if err != nil {
				return err
			}
			if !slices.Equal(first, operand(0, 0, n)) || !slices.Equal(all, slices.Concat(operand(0, 0, n), operand(1, 0, n), operand(2, 0, n))) ||
				!slices.Equal(sum, summed(size, 0, n)) {
				return errors.New("a wrong result")
			}
			return nil
		})
	})
}

func TestDataOfCalls(t *testing.T) {
	of := func(kind schedule.Collective) int {
		return (&call{state: state{shape: shape{Call: schedule.Call{Collective: kind, Size: 3, Length: 5}, element: 8}}}).data()
	}
	require.Equal(t, 120, of(schedule.CollectiveBcast))
	require.Equal(t, 120, of(schedule.CollectiveGather))
	require.Equal(t, 360, of(schedule.CollectiveAlltoall))
	uneven := call{state: state{shape: shape{Call: schedule.Call{Size: 3}, uneven: &uneven{}}, input: make([]byte, 7), output: make([]byte, 9)}}
	require.Equal(t, 27, uneven.data())
}
