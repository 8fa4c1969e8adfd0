package collective

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// Whatever a rank says, nothing breaks here, and what is kept of it is bounded.
func TestNoticesOfAnything(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := openFor(t, provider, 2)
		q, err := Ibarrier(worlds[0])
		require.NoError(t, err)
		g := worlds[0].Extended().(*group)
		number := rapid.OneOf(rapid.Uint64Max(2*slots), rapid.SampledFrom([]uint64{mostNumber - 1, mostNumber, 1<<56 - 1, 1 << 63, 1<<64 - 1}), rapid.Uint64())
		rapid.Check(t, func(t *rapid.T) {
			notices := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) comm.Notice {
				return comm.Notice{
					Tag: noticeTag(rapid.Uint64Max(noticeShared+1).Draw(t, "kind"), number.Draw(t, "number")),
					ID:  number.Draw(t, "id"), Length: number.Draw(t, "length"), Remote: fabric.Remote{Address: number.Draw(t, "address")},
				}
			}), 1, 20).Draw(t, "notices")
			words := rapid.SliceOfN(rapid.Uint32Max(1<<comm.WordBits-1), 1, 20).Draw(t, "words")
			longest := 0
			g.comm.Reactor().Do(func(p progress) {
				// What has ended takes nothing in.
				g.failure = nil
				for _, n := range notices {
					_ = g.Notice(p, 1, n)
				}
				for _, w := range words {
					g.Written(p, w)
				}
				for _, of := range g.arrivals {
					for _, set := range of {
						longest = max(longest, len(set)*64)
					}
				}
			})
			require.LessOrEqual(t, longest, mostNumber)
		})
		onAll(worlds, func(_ int, c *comm.Comm) { _ = c.Close() })
		_ = q.Wait(deadline(t))
	})
}

// A context that has ended before a call begins, or while it waits for a slot, ends it as
// any other, and not the wait for a request.
func TestContextHasEnded(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, before := range []int{0, slots, 2 * slots} {
			worlds := open(t, provider, 2)
			var requests []*Request
			for range before {
				q, err := Ibarrier(worlds[0])
				require.NoError(t, err)
				requests = append(requests, q)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, q := range requests {
				require.ErrorIs(t, q.Wait(ctx), context.Canceled)
			}
			require.Equal(t, context.Canceled, Barrier(ctx, worlds[0]))
			for _, q := range requests {
				require.ErrorIs(t, q.Wait(deadline(t)), context.Canceled)
			}
			requireAborted(t, worlds[1], Barrier(deadline(t), worlds[1]), 0, ReasonContext)
		}
	})
}

// Memory that the device may still read when a call ends stays registered until it has
// ended that.
func TestInputIsInFlight(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		c := open(t, provider, 2)[0]
		require.NoError(t, Configure(c, Config{}))
		g := c.Extended().(*group)
		q := newCall(g, nil, nil, operator.Erased{})
		var exposed, kept, left *efa.Exposure
		var err error
		c.Reactor().Do(func(p progress) {
			if exposed, err = p.Expose(make([]byte, 1000)); err != nil {
				return
			}
			q.exposed, q.flying, g.flying = exposed, 1, 1
			q.fail(p, errClosed)
			q.giveUp(p)
			kept = q.exposed
			q.landed(p, 1, nil)
			left = q.exposed
		})
		require.NoError(t, err)
		require.Same(t, exposed, kept)
		require.Nil(t, left)
		var in *efa.InFlightError
		require.ErrorAs(t, q.err, &in)
		<-in.Released
	})
}
