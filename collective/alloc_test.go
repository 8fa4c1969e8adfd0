//go:build !race && !asan

package collective

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/fabric"
)

// Calls that go through the cache are done without allocation on any side.
// (Under the race detector sync.Pool forgets on purpose, and asan allocates.)
func TestSmallCallsDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		ctx := deadline(t)
		send, recv := [2][]int64{make([]int64, 16), make([]int64, 16)}, [2][]int64{make([]int64, 16), make([]int64, 16)}
		sum := operator.Sum[int64]()
		kinds := map[string]func(rank int, c *comm.Comm) error{
			"barrier":   func(_ int, c *comm.Comm) error { return Barrier(ctx, c) },
			"bcast":     func(rank int, c *comm.Comm) error { return Bcast(ctx, c, recv[rank], 1) },
			"reduce":    func(rank int, c *comm.Comm) error { return Reduce(ctx, c, send[rank], recv[rank], sum, 0) },
			"allreduce": func(rank int, c *comm.Comm) error { return Allreduce(ctx, c, send[rank], recv[rank], sum) },
			"alltoall":  func(rank int, c *comm.Comm) error { return Alltoall(ctx, c, send[rank], recv[rank]) },
		}
		requireNoAllocations(t, worlds, 100, kinds)
	})
}

// Neither are larger ones where all is in arenas.
func TestCallsInArenasDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		ctx := deadline(t)
		const n = 20_000
		var bufs [2][]int64
		for rank := range bufs {
			var a *fabric.Arena
			a, bufs[rank] = arenaOf(t, 2*n)
			defer func() { require.NoError(t, a.Close()) }()
		}
		sum := operator.Sum[int64]()
		requireNoAllocations(t, worlds, 20, map[string]func(rank int, c *comm.Comm) error{
			"bcast":     func(rank int, c *comm.Comm) error { return Bcast(ctx, c, bufs[rank], 1) },
			"allreduce": func(rank int, c *comm.Comm) error { return Allreduce(ctx, c, bufs[rank][:n], bufs[rank][n:], sum) },
			"in place":  func(rank int, c *comm.Comm) error { return Allreduce(ctx, c, bufs[rank], bufs[rank], sum) },
			"alltoall":  func(rank int, c *comm.Comm) error { return Alltoall(ctx, c, bufs[rank][:n], bufs[rank][n:]) },
		})
	})
}

// requireNoAllocations has two ranks make so many calls of each kind, and some more.
func requireNoAllocations(t *testing.T, worlds []*comm.Comm, rounds int, kinds map[string]func(rank int, c *comm.Comm) error) {
	t.Helper()
	for name, f := range kinds {
		errs := make(chan error, 1)
		// AllocsPerRun makes one round more, to begin with.
		go func() {
			var err error
			for i := 0; i < 2*rounds+2 && err == nil; i++ {
				err = f(1, worlds[1])
			}
			errs <- err
		}()
		var err error
		round := func() {
			if e := f(0, worlds[0]); e != nil {
				err = e
			}
		}
		testing.AllocsPerRun(rounds, round)
		perCall := testing.AllocsPerRun(rounds, round)
		require.NoError(t, err)
		require.NoError(t, <-errs)
		require.Zero(t, perCall, name)
	}
}
