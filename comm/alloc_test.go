//go:build !race && !asan

package comm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// A short message crosses without allocation on either side, in both modes of matching:
// into a receive that is posted before, and one that is posted after.
func TestEagerDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Provider == "" {
			// The device in memory is free to allocate.
			return
		}
		zero, one, _ := b.pair(t)
		ctx := context.Background()
		out, in := make([]byte, 1000), make([]byte, 1000)
		begin, sent := make(chan struct{}), make(chan error)
		go func() {
			for range begin {
				sent <- zero.Send(ctx, out, 1, 1)
			}
		}()
		var failures []error
		for _, early := range []bool{true, false} {
			round := func() {
				var q Request
				var err, failed error
				if early {
					q, err = one.Irecv(in, 0, 1)
					begin <- struct{}{}
					failed = <-sent
				} else {
					begin <- struct{}{}
					failed = <-sent
					q, err = one.Irecv(in, AnySource, AnyTag)
				}
				if err == nil {
					_, err = q.Wait(ctx)
				}
				if err != nil || failed != nil {
					failures = append(failures, err, failed)
				}
			}
			// Credit goes back once in a while, and all memory is warm after some rounds.
			for range mostOutstanding / 2 {
				round()
			}
			require.Zero(t, testing.AllocsPerRun(mostOutstanding/2, round), "early %t", early)
		}
		close(begin)
		require.Empty(t, failures)
		if b.matching == MatchByProvider {
			one.engine.do(func(efa.Progress) {
				seen := one.engine.peers[0].seen.messages
				check(t, seen > 2*mostOutstanding, "%d messages were matched", seen)
			})
		}
	})
}
