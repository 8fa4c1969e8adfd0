package collective

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-go/weft/comm"
)

// A rank is ahead of another that puts to it by as many calls as there are slots, while
// that one still waits for a third in the first of them.
func TestRankIsFarAhead(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const calls, length = 3*slots + 1, 20_000
		worlds := open(t, provider, 3)
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			if rank == 2 {
				// Rank 1 has had all that it can have before this one begins.
				if _, err := c.Recv(deadline(t), nil, 1, 1); err != nil {
					return err
				}
			}
			var requests []*Request
			buffers := make([][]int64, calls)
			for call := range calls {
				buffers[call] = make([]int64, length)
				if rank == 0 {
					copy(buffers[call], operand(0, call, length))
				}
				q, err := Ibcast(c, buffers[call], 0)
				if err != nil {
					return err
				}
				requests = append(requests, q)
			}
			for call, q := range requests {
				if err := q.Wait(deadline(t)); err != nil {
					return fmt.Errorf("call %d: %w", call, err)
				}
				if rank == 1 && call == slots-1 {
					if err := c.Send(deadline(t), nil, 2, 1); err != nil {
						return err
					}
				}
				if !slices.Equal(buffers[call], operand(0, call, length)) {
					return fmt.Errorf("call %d has something else", call)
				}
			}
			return nil
		})
	})
}
