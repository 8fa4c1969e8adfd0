package collective

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/comm"
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
