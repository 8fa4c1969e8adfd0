package collective

import (
	"errors"
	"net"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// A rank that closes a communicator after its last call does not hold up the other's end
// of the world, and calls that it does not make any more end.
func TestOneClosesDup(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, length := range lengths {
			worlds := openFor(t, provider, 2)
			dups := make([]*comm.Comm, 2)
			everywhere(t, worlds, func(rank int, world *comm.Comm) (err error) {
				if dups[rank], err = world.Dup(deadline(t)); err != nil {
					return err
				}
				if err := Bcast(deadline(t), dups[rank], make([]int64, length), 0); err != nil || rank == 0 {
					return err
				}
				return dups[rank].Close()
			})
			if length == lengths[0] {
				requireAborted(t, dups[0], Barrier(deadline(t), dups[0]), 1, ReasonClosed)
				require.ErrorIs(t, Barrier(deadline(t), dups[1]), net.ErrClosed)
			}
			require.NoError(t, worlds[0].Close())
			require.NoError(t, worlds[1].Close())
		}
	})
}

// Who has had what a call gives may leave, before the others have ended it.
func TestTargetsLeave(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for range 5 {
			for _, length := range lengths {
				worlds := openFor(t, provider, 3)
				everywhere(t, worlds, func(_ int, c *comm.Comm) error {
					if err := Bcast(deadline(t), c, make([]int64, length), 0); err != nil {
						return err
					}
					return c.Close()
				})
			}
		}
	})
}

// A rank that closes a communicator without a call ends those of the others, whether they
// have begun or not.
func TestOneClosesDupBeforeItsFirstCall(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 3)
		for _, begun := range []bool{false, true} {
			dups := make([]*comm.Comm, 3)
			everywhere(t, worlds, func(rank int, world *comm.Comm) (err error) {
				dups[rank], err = world.Dup(deadline(t))
				return err
			})
			var requests []*Request
			if begun {
				for _, c := range dups[:2] {
					q, err := Ibarrier(c)
					require.NoError(t, err)
					requests = append(requests, q)
				}
			}
			require.NoError(t, dups[2].Close())
			require.ErrorIs(t, Barrier(deadline(t), dups[2]), net.ErrClosed)
			// The others have heard of that before this.
			everywhere(t, worlds, func(_ int, world *comm.Comm) error { return Barrier(deadline(t), world) })
			if !begun {
				for _, c := range dups[:2] {
					q, err := Ibarrier(c)
					require.NoError(t, err)
					requests = append(requests, q)
				}
			}
			for rank, q := range requests {
				requireAborted(t, dups[rank], q.Wait(deadline(t)), 2, ReasonClosed)
				require.NoError(t, dups[rank].Close())
			}
		}
	})
}

// Communicators that come and go leave nothing behind in the world, and each hears of writes.
func TestDupsComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		count := 1000
		if provider == "sockets" || testing.Short() {
			count = 300 // which take long, and are more than there are windows
		}
		groups := make([]weak.Pointer[group], 0, 2*count)
		use := func(i int) {
			dups := make([]*comm.Comm, 2)
			everywhere(t, worlds, func(rank int, world *comm.Comm) (err error) {
				if dups[rank], err = world.Dup(deadline(t)); err != nil {
					return err
				}
				for _, length := range lengths[:1+i%2] {
					buf := make([]int64, length)
					err = errors.Join(err, Allreduce(deadline(t), dups[rank], buf, buf, operator.Sum[int64]()))
				}
				return err
			})
			everywhere(t, worlds, func(rank int, _ *comm.Comm) (err error) {
				if i%4 == rank {
					// It closes amid a call.
					_, err = Iallgather(dups[rank], make([]int64, 20_000), make([]int64, 40_000))
				}
				return errors.Join(err, dups[rank].Close())
			})
			for _, c := range dups {
				g := c.Extended().(*group)
				require.Equal(t, c.Reactor().CanTell(), g.window >= 0, "communicator %d", i)
				groups = append(groups, weak.Make(g))
			}
			// Behind it, both know that the other has closed it.
			everywhere(t, worlds, func(_ int, world *comm.Comm) error { return Barrier(deadline(t), world) })
		}
		const first = 20
		for i := range first {
			use(i)
		}
		before := fabrictest.Holds()
		for i := first; i < count; i++ {
			use(i)
			if i%100 == 0 {
				require.NoError(t, before.Returned(patience))
			}
		}
		require.NoError(t, before.Returned(patience))
		// The world does not know them any more either.
		runtime.GC()
		live := 0
		for _, g := range groups {
			if g.Value() != nil {
				live++
			}
		}
		require.Less(t, live, 10)
	})
}
