package collective

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// errorsOf runs f for each rank at the same time.
func errorsOf(worlds []*comm.Comm, f func(rank int, c *comm.Comm) error) []error {
	errs := make([]error, len(worlds))
	onAll(worlds, func(rank int, c *comm.Comm) { errs[rank] = f(rank, c) })
	return errs
}

// lengths are of calls that go through the cache and of those that do not.
var lengths = []int{4, 20_000}

// requireAborted wants the error of a call that another rank has given up, now and
// from now on.
func requireAborted(t *testing.T, c *comm.Comm, err error, rank int, reason AbortReason) {
	t.Helper()
	var aborted *AbortError
	require.ErrorAs(t, err, &aborted)
	require.Equal(t, AbortError{Rank: rank, Reason: reason, Lost: aborted.Lost}, *aborted)
	require.Equal(t, err, Barrier(deadline(t), c))
}

// A rank whose context ends ends the call for all, and its messages go on.
func TestContextEndsForAll(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, length := range lengths {
			worlds := open(t, provider, 3)
			ctx, cancel := context.WithCancelCause(deadline(t))
			mine := errors.New("enough")
			errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
				buf := make([]int64, length)
				if rank == 2 {
					// The others wait for it.
					require.NoError(t, c.Send(deadline(t), nil, 0, 1))
					return nil
				}
				if rank == 0 {
					_, err := c.Recv(deadline(t), nil, 2, 1)
					require.NoError(t, err)
					cancel(mine)
				}
				return Allreduce(ctx, c, buf, buf, operator.Sum[int64]())
			})
			require.NoError(t, errs[2])
			// Whichever of the two ends first tells the other.
			for _, err := range errs[:2] {
				var aborted *AbortError
				require.True(t, errors.Is(err, mine) || errors.As(err, &aborted), "%v", err)
			}
			require.True(t, errors.Is(errs[0], mine) || errors.Is(errs[1], mine))
			var aborted *AbortError
			require.ErrorAs(t, Barrier(deadline(t), worlds[2]), &aborted)
			require.Equal(t, ReasonContext, aborted.Reason)
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				_, err := c.Sendrecv(deadline(t), nil, (rank+1)%3, 5, nil, (rank+2)%3, 5)
				return err
			})
		}
	})
}

// The cause of a context may be what has come of a call of another communicator, whose ranks
// are others.
func TestContextEndsByAnotherCall(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		ctx, cancel := context.WithCancelCause(t.Context())
		elsewhere := &AbortError{Rank: 99, Reason: ReasonOperator}
		cancel(elsewhere)
		require.Equal(t, elsewhere, Barrier(ctx, worlds[0]))
		requireAborted(t, worlds[1], Barrier(deadline(t), worlds[1]), 0, ReasonContext)
	})
}

// An operator that fails on one rank ends the call for all.
func TestOperatorFails(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, length := range lengths {
			worlds := open(t, provider, 3)
			errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
				buf := make([]int64, length)
				op := operator.Func("sum or panic", true, func(dst, left, right []int64) {
					if rank == 1 {
						panic("of the operator")
					}
					_ = operator.Sum[int64]().Apply(dst, left, right)
				})
				// Each rank combines something in this one.
				return Allreduce(deadline(t), c, buf, buf, op)
			})
			var panicked *operator.PanicError
			require.ErrorAs(t, errs[1], &panicked)
			require.Equal(t, "of the operator", panicked.Value)
			// One that was done before it hears of the failure is so the next time.
			for _, rank := range []int{0, 2} {
				err := errs[rank]
				if err == nil {
					err = Barrier(deadline(t), worlds[rank])
				}
				requireAborted(t, worlds[rank], err, 1, ReasonOperator)
			}
		}
	})
}

// A rank that leaves ends calls that need it. What it has put before is there.
func TestRankLeaves(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, length := range lengths {
			worlds := openFor(t, provider, 3)
			errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
				buf := make([]int64, length)
				if rank == 0 {
					copy(buf, operand(0, 0, length))
				}
				if err := Bcast(deadline(t), c, buf, 0); err != nil {
					return err
				}
				require.Equal(t, operand(0, 0, length), buf)
				if rank == 0 {
					// It has told the others, and does not wait for them to have heard.
					return c.Close()
				}
				err := Allreduce(deadline(t), c, buf, buf, operator.Sum[int64]())
				require.Equal(t, err, Barrier(deadline(t), c))
				return err
			})
			require.NoError(t, errs[0])
			for _, err := range errs[1:] {
				var lost *comm.RankError
				var aborted *AbortError
				switch {
				case errors.As(err, &lost):
					require.Equal(t, 0, lost.Rank)
					require.ErrorIs(t, err, comm.ErrLeft)
				default:
					require.ErrorAs(t, err, &aborted)
					require.Equal(t, ReasonLost, aborted.Reason)
					require.Equal(t, 0, aborted.Lost)
				}
			}
			for _, c := range worlds[1:] {
				require.NoError(t, c.Close())
				require.ErrorIs(t, Barrier(t.Context(), c), net.ErrClosed)
			}
		}
	})
}

// Ranks that make different calls hear of it, where they tell each other of their memory.
func TestMismatch(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
			buf := make([]int64, 20_000+rank)
			return Allreduce(deadline(t), c, buf, buf, operator.Sum[int64]())
		})
		mismatches := 0
		for _, err := range errs {
			var mismatch *MismatchError
			var aborted *AbortError
			if errors.As(err, &mismatch) {
				mismatches++
				continue
			}
			require.ErrorAs(t, err, &aborted)
			require.Equal(t, ReasonMismatch, aborted.Reason)
		}
		require.Positive(t, mismatches)
	})
}

// Of calls as long as each other too, where what they combine differs, or how.
func TestMismatchOfOperators(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const length = 20_000
		for name, other := range map[string]func(c *comm.Comm) error{
			"type": func(c *comm.Comm) error {
				buf := make([]float64, length)
				return Allreduce(deadline(t), c, buf, buf, operator.Sum[float64]())
			},
			"operator": func(c *comm.Comm) error {
				buf := make([]int64, length)
				return Allreduce(deadline(t), c, buf, buf, operator.Max[int64]())
			},
		} {
			errs := errorsOf(open(t, provider, 2), func(rank int, c *comm.Comm) error {
				if rank == 1 {
					return other(c)
				}
				buf := make([]int64, length)
				return Allreduce(deadline(t), c, buf, buf, operator.Sum[int64]())
			})
			var mismatch *MismatchError
			require.ErrorAs(t, errors.Join(errs...), &mismatch, name)
			for _, err := range errs {
				require.Error(t, err, name)
			}
		}
	})
}

// A rank that makes another call than one that the other is done with by then is no less a
// rank: both hear of that, and messages go on.
func TestMismatchWithACallThatIsDone(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		bcast := func(_ int, c *comm.Comm) error { return Bcast(deadline(t), c, make([]int64, 4), 0) }
		everywhere(t, worlds, bcast)
		// Rank 0 knows where the cache of the other is, and waits for nothing.
		require.NoError(t, bcast(0, worlds[0]))
		q, err := Ibarrier(worlds[1])
		require.NoError(t, err)
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			_, err := c.Sendrecv(deadline(t), nil, 1-rank, 0, nil, 1-rank, 0)
			return err
		})
		var mismatch *MismatchError
		require.ErrorAs(t, Barrier(deadline(t), worlds[0]), &mismatch)
		require.Equal(t, MismatchError{Rank: 1}, *mismatch)
		// What the other has put was where this one waited for it.
		require.NoError(t, q.Wait(deadline(t)))
		err = Barrier(deadline(t), worlds[1])
		if err == nil {
			// What rank 0 had put for that before it heard of the other call was enough.
			err = Barrier(deadline(t), worlds[1])
		}
		requireAborted(t, worlds[1], err, 0, ReasonMismatch)
	})
}

// The two ranks of a pair must mean the same number of elements.
func TestMismatchOfPair(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 3)
		errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
			sent, received := Blocks{Counts: []int{2, 2, 2}}, Blocks{Counts: []int{2, 2, 2}}
			if rank == 2 {
				received.Counts[1] = 1
			}
			return Alltoallv(deadline(t), c, make([]int64, 6), sent, make([]int64, 6), received)
		})
		var mismatch *MismatchError
		require.ErrorAs(t, errs[1], &mismatch)
		require.Equal(t, 2, mismatch.Rank)
		// It has all that is for it, unless it hears of the others before.
		if errs[0] != nil {
			requireAborted(t, worlds[0], errs[0], 1, ReasonMismatch)
		}
	})
}

func TestArguments(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		c := open(t, provider, 1)[0]
		ctx := deadline(t)
		var argument *ArgumentError
		require.ErrorAs(t, Bcast(ctx, c, []byte{1}, 1), &argument)
		require.Equal(t, ArgumentError{"root", "1", "0 to 0"}, *argument)
		require.ErrorAs(t, Bcast(ctx, c, []byte{1}, -1), &argument)
		require.ErrorAs(t, Allreduce(ctx, c, make([]int, 2), make([]int, 3), operator.Sum[int]()), &argument)
		require.Equal(t, ArgumentError{"recv", "of 3 elements", "2, as send has"}, *argument)
		var wrong *operator.TypeError
		require.ErrorAs(t, Bcast(ctx, c, []string{""}, 0), &wrong)
		require.ErrorIs(t, Allreduce(ctx, c, []int{1}, []int{1}, operator.Op[int]{}), operator.ErrNoOperator)
		for _, b := range []struct {
			blocks Blocks
			want   ArgumentError
		}{
			{Blocks{Counts: []int{1}, Displacements: []int{-1}}, ArgumentError{"blocks", "with one at -1 for rank 0", "no negative displacement"}},
			{
				Blocks{Counts: []int{1 << 62}, Displacements: []int{1 << 62}},
				ArgumentError{"blocks", "with one of 4611686018427387904 elements behind 4611686018427387904 for rank 0", "what can be counted"},
			},
			{Blocks{Counts: []int{5}}, ArgumentError{"recv", "of 4 elements", "one with 0 to 5, the block of rank 0"}},
		} {
			require.ErrorAs(t, Allgatherv(ctx, c, []int{1}, make([]int, 4), b.blocks), &argument)
			require.Equal(t, b.want, *argument)
		}
		// A panic of the caller's leaves nothing behind.
		require.Panics(t, func() { _ = Barrier(nil, c) }) //nolint:staticcheck // as a program may do it
		// Nothing of this has begun a call.
		one := []int{1}
		require.NoError(t, Allreduce(ctx, c, one, one, operator.Sum[int]()))
		require.Equal(t, []int{1}, one)
	})
}
