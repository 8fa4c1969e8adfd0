package collective

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Whatever is chosen for Alltoall, where counts differ there is one algorithm.
func TestAlltoallvHasOneAlgorithm(t *testing.T) {
	for _, list := range []string{"alltoall=bruck", "alltoall/0/0=bruck", "alltoall=provider"} {
		t.Run(list, func(t *testing.T) {
			t.Setenv(Variable, list)
			each(t, func(t *testing.T, provider string) {
				worlds := open(t, provider, 3)
				everywhere(t, worlds, func(rank int, c *comm.Comm) error {
					sent, received := Blocks{Counts: []int{1, 2, 3}}, Blocks{Counts: slices.Repeat([]int{rank + 1}, 3)}
					send, recv := operand(rank, 0, 6), make([]int64, 3*(rank+1))
					var options []Option
					if rank == 1 {
						options = []Option{WithAlgorithm(schedule.Pairwise)}
					}
					err := Alltoallv(deadline(t), c, send, sent, recv, received, options...)
					var want []int64
					for source := range 3 {
						block := spansOf(sent)[rank]
						want = append(want, operand(source, 0, 6)[block.first:block.end]...)
					}
					if err == nil && !slices.Equal(want, recv) {
						err = errors.New("another result")
					}
					return err
				})
			})
		})
	}
}

// What is wrong with a call is said before it begins, so the communicator goes on.
func TestArgumentsOfUneven(t *testing.T) {
	two := Blocks{Counts: []int{1, 1}}
	below := Blocks{Counts: []int{1, 1}, Displacements: []int{0, -1}}
	overlapping := Blocks{Counts: []int{1, 1}, Displacements: []int{0, 0}}
	one, pair := []int64{1}, []int64{1, 2}
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		ctx := deadline(t)
		for name, call := range map[string]func(c *comm.Comm, root int) error{
			"allgatherv to nothing": func(c *comm.Comm, _ int) error { return Allgatherv(ctx, c, one, nil, two) },
			"gatherv to nothing":    func(c *comm.Comm, _ int) error { return Gatherv(ctx, c, one, nil, two, c.Rank()) },
			"scatterv of nothing":   func(c *comm.Comm, _ int) error { return Scatterv(ctx, c, nil, two, one, c.Rank()) },
			"alltoallv to nothing":  func(c *comm.Comm, _ int) error { return Alltoallv(ctx, c, pair, two, nil, two) },

			"allgatherv to one place":    func(c *comm.Comm, _ int) error { return Allgatherv(ctx, c, one, pair, overlapping) },
			"gatherv to one place":       func(c *comm.Comm, root int) error { return Gatherv(ctx, c, one, pair, overlapping, root) },
			"alltoallv to one place":     func(c *comm.Comm, _ int) error { return Alltoallv(ctx, c, pair, two, pair, overlapping) },
			"gatherv below, of no root":  func(c *comm.Comm, _ int) error { return Gatherv(ctx, c, one, nil, below, 1-c.Rank()) },
			"scatterv below, of no root": func(c *comm.Comm, _ int) error { return Scatterv(ctx, c, nil, below, one, 1-c.Rank()) },
			"more than there can be": func(c *comm.Comm, _ int) error {
				return Gatherv(ctx, c, one, nil, Blocks{Counts: []int{1, 1 << 43}}, 1-c.Rank())
			},
			"alltoallv by another": func(c *comm.Comm, _ int) error {
				return Alltoallv(ctx, c, pair, two, pair, two, WithAlgorithm(schedule.Bruck))
			},
			"alltoallv by the provider's": func(c *comm.Comm, _ int) error {
				return Alltoallv(ctx, c, pair, two, pair, two, WithAlgorithm(schedule.Provider))
			},
		} {
			for rank, err := range errorsOf(worlds, func(_ int, c *comm.Comm) error { return call(c, 0) }) {
				var argument *ArgumentError
				require.ErrorAs(t, err, &argument, "%s, rank %d", name, rank)
			}
			everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(ctx, c) })
		}
	})
}

// Counts are refused that no memory can have, also where their bytes come out as few.
func TestLengthsThatWrapAround(t *testing.T) {
	type block [1 << 24]byte
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
			counts := []int{1, 1}
			if rank == 1 {
				counts[0] = 1 << 40 // in bytes, 2^64
			}
			return Gatherv(deadline(t), c, make([]block, 1), make([]block, 2), Blocks{Counts: counts}, 0)
		})
		var argument *ArgumentError
		require.ErrorAs(t, errs[1], &argument)
		require.Contains(t, argument.Error(), "length")
		require.Error(t, errs[0])
	})
}

// Ranks that put blocks to different places hear of it, before anything is there. What is
// of no block does not count, and neither does how places are said.
func TestMismatchOfPlaces(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		counts := []int{1, 0, 2}
		same := []Blocks{{Counts: counts}, {Counts: counts, Displacements: []int{0, 1, 1}}, {Counts: counts, Displacements: []int{0, 3, 1}}}
		other := Blocks{Counts: counts, Displacements: []int{2, 0, 0}}
		for name, call := range map[string]func(c *comm.Comm, blocks Blocks) error{
			"allgatherv": func(c *comm.Comm, blocks Blocks) error {
				return Allgatherv(deadline(t), c, make([]int64, counts[c.Rank()]), make([]int64, 3), blocks)
			},
			"gatherv": func(c *comm.Comm, blocks Blocks) error {
				return Gatherv(deadline(t), c, make([]int64, counts[c.Rank()]), make([]int64, 3), blocks, 0)
			},
			"scatterv": func(c *comm.Comm, blocks Blocks) error {
				return Scatterv(deadline(t), c, make([]int64, 3), blocks, make([]int64, counts[c.Rank()]), 0)
			},
		} {
			worlds := open(t, provider, 3)
			everywhere(t, worlds, func(rank int, c *comm.Comm) error { return call(c, same[rank]) })
			errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
				if rank == 2 {
					return call(c, other)
				}
				return call(c, same[0])
			})
			mismatches := 0
			for _, err := range errs {
				var mismatch *MismatchError
				var aborted *AbortError
				switch {
				case errors.As(err, &mismatch):
					mismatches++
				case err != nil:
					require.ErrorAs(t, err, &aborted, name)
					require.Equal(t, ReasonMismatch, aborted.Reason, name)
				}
			}
			require.Positive(t, mismatches, "%s: %v", name, errs)
		}
	})
}
