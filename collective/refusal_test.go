package collective

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// A call that is refused on one rank, of which the others make it, ends on all: whichever
// comes first.
func TestRefusalEndsForAll(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, length := range lengths {
			for _, late := range []bool{false, true} {
				worlds := open(t, provider, 3)
				first, second := []int{1}, []int{0, 2}
				if late {
					first, second = second, first
				}
				everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
				errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
					send, recv := make([]int64, length), make([]int64, length)
					if slices.Contains(second, rank) {
						_, err := c.Recv(deadline(t), nil, first[0], 1)
						require.NoError(t, err)
					}
					if rank == 1 {
						recv = recv[1:]
					}
					q, err := Iallreduce(c, send, recv, operator.Sum[int64]())
					if rank == first[0] {
						for _, other := range second {
							require.NoError(t, c.Send(deadline(t), nil, other, 1))
						}
					}
					if err != nil {
						return err
					}
					return q.Wait(deadline(t))
				})
				var argument *ArgumentError
				require.ErrorAs(t, errs[1], &argument)
				for _, rank := range []int{0, 2} {
					requireAborted(t, worlds[rank], errs[rank], 1, ReasonArgument)
				}
				requireAborted(t, worlds[1], Barrier(deadline(t), worlds[1]), 1, ReasonArgument)
			}
		}
	})
}

// What all ranks are refused is no call of any, however often, and also before the first.
func TestRefusalOfAll(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 3)
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			for round := range 200 {
				for range round % 3 {
					var argument *ArgumentError
					require.ErrorAs(t, Bcast(deadline(t), c, []byte{1}, 3+rank), &argument)
				}
				one := []int{1}
				if err := Allreduce(deadline(t), c, one, one, operator.Sum[int]()); err != nil {
					return err
				}
				require.Equal(t, []int{3}, one)
			}
			return nil
		})
	})
}

// A rank that is refused a call less often than the others makes another call than they.
func TestRefusalOfOneMore(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
			for range 1 + rank {
				require.Error(t, Bcast(deadline(t), c, []byte{1}, 7))
			}
			return Barrier(deadline(t), c)
		})
		for rank, err := range errs {
			if err == nil {
				// What it needed was there before the word of the refusal.
				err = Barrier(deadline(t), worlds[rank])
			}
			requireAborted(t, worlds[rank], err, 1, ReasonArgument)
		}
	})
}

// A rank that is refused a call again and again costs the others no memory.
func TestRefusalsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
		var all []*Request
		for range 10 * mostAttempts {
			require.Error(t, Bcast(deadline(t), worlds[1], []byte{1}, 7))
			q, err := Ibarrier(worlds[1])
			require.NoError(t, err)
			all = append(all, q)
		}
		for _, q := range all {
			requireAborted(t, worlds[1], q.Wait(deadline(t)), 1, ReasonArgument)
		}
		requireAborted(t, worlds[0], Barrier(deadline(t), worlds[0]), 1, ReasonArgument)
	})
}

func TestAttempts(t *testing.T) {
	var a attempts
	for _, n := range []uint64{3, 4, 5, 9, 11} {
		require.True(t, a.add(n))
	}
	require.Len(t, a, 3)
	for n, want := range []bool{false, false, false, true, true, true, false, false, false, true, false, true, false} {
		require.Equal(t, want, a.has(uint64(n)), "%d", n)
	}
	for n := uint64(13); len(a) < mostAttempts; n += 2 {
		require.True(t, a.add(n))
	}
	require.False(t, a.add(1000))
	require.True(t, a.add(a[mostAttempts-1].end), "of the last run")
}
