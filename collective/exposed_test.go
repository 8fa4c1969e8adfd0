package collective

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// Where registering costs nothing, others put long results to memory of Go's as they do to
// arenas, for the time of a call.
func TestLongResultsAreNotCopied(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		const n = leastExposed / 8
		// Connections, and the cache, are there afterwards.
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
		before := fabrictest.Holds()
		// On shm they copy, unless there are as many windows as may be.
		sharedBlocks.Add(mostShared)
		defer sharedBlocks.Add(-mostShared)
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			ctx := deadline(t)
			all, mine, other := make([]int64, 2*n), operand(rank, 0, n), make([]int64, 2*n)
			copy(all[rank*n:], mine)
			if err := errors.Join(Allgather(ctx, c, all[rank*n:][:n], all), Alltoall(ctx, c, all, other)); err != nil {
				return err
			}
			require.Equal(t, slices.Concat(operand(0, 0, n), operand(1, 0, n)), all)
			require.Equal(t, slices.Concat(operand(rank, 0, n), operand(rank, 0, n)), other)
			if rank == 0 {
				clear(all)
			}
			if err := Bcast(ctx, c, all, 1); err != nil {
				return err
			}
			require.Equal(t, slices.Concat(operand(0, 0, n), operand(1, 0, n)), all)
			return nil
		})
		if !worlds[0].Reactor().NeedsRegistration() {
			for rank, c := range worlds {
				require.Empty(t, c.Extended().(*group).windows.spare, "rank %d", rank)
			}
			require.NoError(t, before.Returned(patience))
		}
	})
}

// What a lost rank was told of stays exposed, and so pinned, until the world is closed: on
// shm nobody else could keep it from writing there.
func TestLongResultOfALostRank(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		c := openFor(t, provider, 2)
		buf := make([]int64, leastExposed/8)
		q, err := Iallreduce(c[0], buf, buf, operator.Sum[int64](), WithAlgorithm(schedule.Ring))
		require.NoError(t, err)
		g := c[0].Extended().(*group)
		c[0].Reactor().Do(func(p progress) { g.Lost(p, 1, efa.ErrPeerLost) })
		err = q.Wait(deadline(t))
		var lost *comm.RankError
		require.ErrorAs(t, err, &lost)
		var in *efa.InFlightError
		exposed := !c[0].Reactor().NeedsRegistration()
		require.Equal(t, exposed, errors.As(err, &in))
		if exposed {
			select {
			case <-in.Released:
				t.Fatal("nobody knows whether the rank still writes")
			default:
			}
		}
		onAll(c, func(_ int, c *comm.Comm) { require.NoError(t, c.Close()) })
		if exposed {
			<-in.Released
		}
	})
}
