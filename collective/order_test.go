package collective

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// affine is x -> a*x + b. One after the other is another one, and the order counts.
type affine struct{ A, B uint32 }

var after = operator.Func("after", false, func(dst, left, right []affine) {
	for i := range dst {
		l, r := left[i], right[i]
		dst[i] = affine{l.A * r.A, l.A*r.B + l.B}
	}
})

func maps(rank, length int) []affine {
	s := make([]affine, length)
	for i := range s {
		s[i] = affine{uint32(2*rank + 3 + i), uint32(rank*rank + 7*i + 1)}
	}
	return s
}

// An operator that is not commutative sees its operands in the order of the ranks.
func TestOrderOfOperands(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, size := range []int{2, 5, 6} {
			worlds := open(t, provider, size)
			for _, length := range []int{3, 6000} {
				want := maps(0, length)
				for rank := 1; rank < size; rank++ {
					_ = after.Apply(want, want, maps(rank, length))
				}
				for root := range size {
					everywhere(t, worlds, func(rank int, c *comm.Comm) error {
						recv := maps(rank, length) // in place
						err := Reduce(deadline(t), c, recv, recv, after, root)
						if err == nil && rank == root && !slices.Equal(recv, want) {
							err = fmt.Errorf("reduce to %d: %.80s, want %.80s", root, fmt.Sprint(recv), fmt.Sprint(want))
						}
						return err
					})
				}
				for _, a := range schedule.Algorithms(schedule.CollectiveAllreduce) {
					if !schedule.KeepsOrder(schedule.CollectiveAllreduce, a) {
						continue
					}
					everywhere(t, worlds, func(rank int, c *comm.Comm) error {
						recv := make([]affine, length)
						err := Allreduce(deadline(t), c, maps(rank, length), recv, after, WithAlgorithm(a))
						if err == nil && !slices.Equal(recv, want) {
							err = fmt.Errorf("%v: %.80s, want %.80s", a, fmt.Sprint(recv), fmt.Sprint(want))
						}
						return err
					})
				}
			}
		}
	})
}
