package collective

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// More pieces than words have numbers for go from rank to rank as the others do: where ranks map each other's
// memory, without the device, which shm would have confirm each of them before the next.
func TestManyPieces(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const size, root = 3, 1
		worlds := open(t, provider, size)
		for range 2 * slots {
			everywhere(t, worlds, func(_ int, c *comm.Comm) error {
				return Alltoall(deadline(t), c, make([]int64, size), make([]int64, size))
			})
		}
		for _, chunk := range []int{2, 16 << 10} {
			length := 4 * mostWordNumber * chunk / 2
			options := []Option{WithAlgorithm(schedule.Direct), func(o *schedule.Options) { o.Chunk = chunk }}
			all := make([]uint16, size*length)
			for i := range all {
				all[i] = uint16(i * 7)
			}
			for name, do := range map[string]func(rank int, c *comm.Comm, mine, whole []uint16) error{
				"gather": func(rank int, c *comm.Comm, mine, whole []uint16) error {
					copy(mine, all[rank*length:])
					return Gather(deadline(t), c, mine, whole, root, options...)
				},
				"scatter": func(rank int, c *comm.Comm, mine, whole []uint16) error {
					copy(whole, all)
					return Scatter(deadline(t), c, whole, mine, root, options...)
				},
			} {
				var before [size]uint64
				for rank, c := range worlds {
					before[rank] = writes(c)
				}
				everywhere(t, worlds, func(rank int, c *comm.Comm) error {
					mine, whole := make([]uint16, length), make([]uint16, size*length)
					if rank != root {
						whole = whole[:0]
					}
					if err := do(rank, c, mine, whole); err != nil {
						return err
					}
					if rank == root && !slices.Equal(whole, all) || !slices.Equal(mine, all[rank*length:][:length]) {
						return fmt.Errorf("%s in pieces of %d bytes is wrong on rank %d", name, chunk, rank)
					}
					return nil
				})
				for rank, c := range worlds {
					if c.Reactor().SameHost() {
						// A ring that is full leaves words to the device.
						most := uint64(mostWordNumber * (size - 1))
						require.LessOrEqual(t, writes(c)-before[rank], most, "%s in pieces of %d bytes, rank %d", name, chunk, rank)
					}
				}
			}
		}
	})
}
