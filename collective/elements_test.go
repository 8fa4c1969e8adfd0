package collective

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// odd is an element of a size that is no power of two.
type odd [3]byte

// Elements need not fit evenly into anything, and chunks of one each are more puts than
// words have numbers for.
func TestOddElements(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, pages := range []int{-1, 1, 32} {
			worlds := open(t, provider, 3)
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				if err := Configure(c, Config{CachePages: pages, Chunk: 1}); err != nil {
					return err
				}
				for _, n := range []int{0, 1, 7, 341, 342, 3000} {
					send, recv := make([]odd, n), make([]odd, 3*n)
					for i := range send {
						send[i] = odd{byte(rank), byte(i), byte(i >> 8)}
					}
					if err := Allgather(deadline(t), c, send, recv); err != nil {
						return err
					}
					for r := range 3 {
						for i := range n {
							if recv[r*n+i] != (odd{byte(r), byte(i), byte(i >> 8)}) {
								return fmt.Errorf("element %d of rank %d is %v", i, r, recv[r*n+i])
							}
						}
					}
					sum := operator.Func("odd", true, func(dst, left, right []odd) {
						for i := range dst {
							dst[i] = odd{left[i][0] + right[i][0], left[i][1] | right[i][1], left[i][2] | right[i][2]}
						}
					})
					if err := Allreduce(deadline(t), c, send, send, sum); err != nil {
						return err
					}
					for i := range n {
						if send[i] != (odd{3, byte(i), byte(i >> 8)}) {
							return fmt.Errorf("sum %d is %v", i, send[i])
						}
					}
				}
				return nil
			})
		}
	})
}

// There may be more shapes than are kept, and slices of nothing.
func TestManyShapes(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			for round := range 2 {
				for n := range 150 {
					buf := make([]int64, n)
					copy(buf, operand(rank, n+round, n))
					if n == 0 {
						buf = nil
					}
					if err := Allreduce(deadline(t), c, buf, buf, operator.Sum[int64]()); err != nil {
						return err
					}
					if !slices.Equal(buf, summed(2, n+round, n)) {
						return fmt.Errorf("the sum of %d elements is another", n)
					}
				}
			}
			return nil
		})
	})
}
