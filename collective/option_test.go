package collective

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// An option cannot say of a call what is not so.
func TestOptionsOfWhatIsNotSo(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 3)
		claim := Option(func(o *schedule.Options) { o.InPlace, o.Commutative = true, !o.Commutative })
		for _, length := range lengths {
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				got := make([]int64, length)
				err := ReduceScatter(deadline(t), c, operand(rank, 0, 3*length), got, operator.Sum[int64](), claim)
				if want := summed(3, 0, 3*length)[rank*length:][:length]; err == nil && !slices.Equal(got, want) {
					err = fmt.Errorf("%.60s, want %.60s", fmt.Sprint(got), fmt.Sprint(want))
				}
				return err
			})
			first := operator.Func("first", false, func(dst, left, _ []int64) { copy(dst, left) })
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				got := make([]int64, length)
				err := Reduce(deadline(t), c, operand(rank, 1, length), got, first, 1, claim)
				if rank == 1 && err == nil && !slices.Equal(got, operand(0, 1, length)) {
					err = errors.New("operands have changed places")
				}
				return err
			})
		}
	})
}

// Options for which there is no plan are refused before the call begins.
func TestOptionsWithoutAPlan(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		bufs := [2][]byte{make([]byte, schedule.MaxPieces+1), make([]byte, schedule.MaxPieces+1)}
		for _, adjust := range []Option{
			func(o *schedule.Options) { o.Fanout = -1 },
			func(o *schedule.Options) { o.Chunk = -1 },
			func(o *schedule.Options) { o.Chunk = 1 },
			WithAlgorithm(schedule.Ring),
			nil,
		} {
			for rank, err := range errorsOf(worlds, func(rank int, c *comm.Comm) error { return Bcast(deadline(t), c, bufs[rank], 0, adjust) }) {
				var argument *ArgumentError
				require.ErrorAs(t, err, &argument, "rank %d", rank)
			}
		}
		everywhere(t, worlds, func(rank int, c *comm.Comm) error { return Bcast(deadline(t), c, bufs[rank], 0) })
	})
}
