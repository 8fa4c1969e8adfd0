package collective

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// Several calls are under way at once, more than there are slots, and on several
// communicators, and are waited for in any order.
func TestSeveralAtOnce(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const size, calls = 3, 3 * slots
		worlds := open(t, provider, size)
		everywhere(t, worlds, func(rank int, world *comm.Comm) error {
			other, err := world.Dup(deadline(t))
			if err != nil {
				return err
			}
			var requests []*Request
			results := make([][]int64, calls)
			for call := range calls {
				c := world
				if call%2 == 1 {
					c = other
				}
				length := 10
				if call%5 == 2 {
					length = 10_000
				}
				results[call] = make([]int64, length)
				q, err := Iallreduce(c, operand(rank, call, length), results[call], operator.Sum[int64]())
				if err != nil {
					return err
				}
				requests = append(requests, q)
			}
			for call := calls - 1; call >= 0; call-- {
				if call%3 == 0 {
					done, err := false, error(nil)
					for !done {
						done, err = requests[call].Test()
					}
					if err != nil {
						return err
					}
				} else if err := requests[call].Wait(deadline(t)); err != nil {
					return err
				}
				if want := summed(size, call, len(results[call])); !slices.Equal(results[call], want) {
					return fmt.Errorf("call %d on rank %d: %.60s, want %.60s", call, rank, fmt.Sprint(results[call]), fmt.Sprint(want))
				}
			}
			return other.Close()
		})
	})
}

// A wait for a request that is given up leaves it as it is.
func TestWaitIsGivenUp(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		q, err := Ibarrier(worlds[0])
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, q.Wait(ctx), context.Canceled)
		done, err := q.Test()
		require.False(t, done)
		require.NoError(t, err)
		require.NoError(t, Barrier(deadline(t), worlds[1]))
		require.NoError(t, q.Wait(deadline(t)))
	})
}

// A request says again how it has ended, also when another call has its memory.
func TestRequestSaysItsEndAgain(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		says := func(q *Request, want error) {
			t.Helper()
			done, err := q.Test()
			require.True(t, done)
			require.Equal(t, want, err)
			require.Equal(t, want, q.Wait(deadline(t)))
		}
		says(&Request{}, nil)
		var old []*Request
		for range 3 {
			q, err := Ibarrier(worlds[0])
			require.NoError(t, err)
			for _, ended := range old {
				says(ended, nil)
			}
			done, err := q.Test()
			require.NoError(t, err)
			require.False(t, done)
			require.NoError(t, Barrier(deadline(t), worlds[1]))
			require.NoError(t, q.Wait(deadline(t)))
			old = append(old, q)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, Barrier(ctx, worlds[1]), context.Canceled)
		var failed *Request
		var err error
		for range 3 {
			// What rank 1 had put before it gave up is enough for one.
			failed, err = Ibarrier(worlds[0])
			require.NoError(t, err)
			if err = failed.Wait(deadline(t)); err != nil {
				break
			}
		}
		var aborted *AbortError
		require.ErrorAs(t, err, &aborted)
		says(failed, err)
	})
}
