package collective

import (
	"fmt"
	"testing"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// operand is what a rank gives in a call.
func operand(rank, call, length int) []int64 {
	s := make([]int64, length)
	for i := range s {
		s[i] = int64((rank+1)*1_000_003+call*7919+i) % 1009
	}
	return s
}

// summed is the sum of all ranks' operands.
func summed(size, call, length int) []int64 {
	sum := make([]int64, length)
	for rank := range size {
		for i, v := range operand(rank, call, length) {
			sum[i] += v
		}
	}
	return sum
}

func TestAllreduce(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, size := range sizes(provider) {
			worlds := open(t, provider, size)
			call := 0
			for _, a := range schedule.Algorithms(schedule.CollectiveAllreduce) {
				for _, length := range []int{0, 1, 513, 40_000} {
					call++
					want := summed(size, call, length)
					everywhere(t, worlds, func(rank int, c *comm.Comm) error {
						recv := make([]int64, length)
						err := Allreduce(deadline(t), c, operand(rank, call, length), recv, operator.Sum[int64](), WithAlgorithm(a))
						if err == nil && fmt.Sprint(recv) != fmt.Sprint(want) {
							err = fmt.Errorf("%v of %d on rank %d: %.80s, want %.80s", a, length, rank, fmt.Sprint(recv), fmt.Sprint(want))
						}
						return err
					})
				}
			}
		}
	})
}

// Back-to-back calls of all kinds, with all roots, do not meet.
func TestCallsBackToBack(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const rounds = 300
		size := sizes(provider)[len(sizes(provider))-1]
		worlds := open(t, provider, size)
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			for call := range rounds {
				root := call % size
				length := 1 + call%50
				if call%37 == 0 {
					length = 3000 + call
				}
				want := summed(size, call, length)
				recv := make([]int64, length)
				var err error
				got := true
				switch call % 4 {
				case 0:
					copy(recv, operand(rank, call, length))
					err = Allreduce(t.Context(), c, recv, recv, operator.Sum[int64]())
				case 1:
					if rank == root {
						copy(recv, want)
					}
					err = Bcast(t.Context(), c, recv, root)
				case 2:
					err = Reduce(t.Context(), c, operand(rank, call, length), recv, operator.Sum[int64](), root)
					got = rank == root
				case 3:
					err = Barrier(t.Context(), c)
					got = false
				}
				if err != nil {
					return fmt.Errorf("call %d: %w", call, err)
				}
				if got && fmt.Sprint(recv) != fmt.Sprint(want) {
					return fmt.Errorf("call %d on rank %d: %v, want %v", call, rank, recv, want)
				}
			}
			return nil
		})
	})
}
