//go:build !race && !asan

package collective

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
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
		sum, options := operator.Sum[int64](), []Option{WithAlgorithm(schedule.RecursiveDoubling)}
		fanout := []Option{func(o *schedule.Options) { o.Fanout = 3 }}
		kinds := map[string]func(rank int, c *comm.Comm) error{
			"barrier":   func(_ int, c *comm.Comm) error { return Barrier(ctx, c) },
			"bcast":     func(rank int, c *comm.Comm) error { return Bcast(ctx, c, recv[rank], 1) },
			"reduce":    func(rank int, c *comm.Comm) error { return Reduce(ctx, c, send[rank], recv[rank], sum, 0) },
			"allreduce": func(rank int, c *comm.Comm) error { return Allreduce(ctx, c, send[rank], recv[rank], sum) },
			"alltoall":  func(rank int, c *comm.Comm) error { return Alltoall(ctx, c, send[rank], recv[rank]) },
			"by option": func(rank int, c *comm.Comm) error { return Allreduce(ctx, c, send[rank], recv[rank], sum, options...) },
			"by fanout": func(rank int, c *comm.Comm) error { return Bcast(ctx, c, recv[rank], 1, fanout...) },
		}
		requireNoAllocations(t, worlds, 100, kinds)
	})
}

// Calls of many shapes in turn do not drive each other's plans out.
func TestCallsInTurnDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		ctx := deadline(t)
		send, recv := [2][]int64{make([]int64, 4), make([]int64, 4)}, [2][]int64{make([]int64, 4), make([]int64, 4)}
		sum := operator.Sum[int64]()
		requireNoAllocations(t, worlds, 20, map[string]func(rank int, c *comm.Comm) error{
			"all": func(rank int, c *comm.Comm) error {
				s, r := send[rank], recv[rank]
				err := Barrier(ctx, c)
				for root := 0; root < 2 && err == nil; root++ {
					for n := 1; n <= 2 && err == nil; n++ {
						for _, f := range []func() error{
							func() error { return Bcast(ctx, c, r[:n], root) },
							func() error { return Reduce(ctx, c, s[:n], r[:n], sum, root) },
							func() error { return Gather(ctx, c, s[:n], r[:2*n], root) },
							func() error { return Scatter(ctx, c, s[:2*n], r[:n], root) },
							func() error { return Allreduce(ctx, c, s[:n], r[:n], sum) },
							func() error { return Alltoall(ctx, c, s[:2*n], r[:2*n]) },
						} {
							if err = f(); err != nil {
								break
							}
						}
					}
				}
				return err
			},
		})
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
	// A collection empties the pools, and what is in them is allocated again.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
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
