package collective

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// mapped are the windows of rank 0 that a rank has mapped.
func mapped(g *group) (names []windowName) {
	g.comm.Reactor().Do(func(progress) {
		for _, m := range g.members[0].near.windows {
			names = append(names, m.name)
		}
	})
	return names
}

// A window is mapped once, and unmapped when its owner has no use for it any more.
func TestWindowsAreMapped(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 2)
		reduce := func(n int) {
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				mine, got := make([]int32, n), make([]int32, n)
				for i := range mine {
					mine[i] = int32(rank + i)
				}
				if err := Reduce(deadline(t), c, mine, got, operator.Sum[int32](), 0); err != nil || rank > 0 {
					return err
				}
				for i, v := range got {
					if v != int32(2*i+1) {
						return fmt.Errorf("%d at %d", v, i)
					}
				}
				return nil
			})
		}
		before := SharedMemory()
		reduce(100_000)
		names := mapped(groups[1])
		require.Len(t, names, 1)
		require.Equal(t, before+2<<20+headerSize, SharedMemory())
		reduce(100_000)
		// What needs less has it, too.
		reduce(50_000)
		require.Equal(t, names, mapped(groups[1]))

		// The largest stays, and of the others as many as are kept.
		for n := 200_000; n <= 12_800_000; n *= 2 {
			reduce(n)
		}
		require.Eventually(t, func() bool {
			return len(mapped(groups[1])) <= mostSpare
		}, time.Minute, time.Millisecond)
		require.NotContains(t, mapped(groups[1]), names[0])
		// More than is shared goes without.
		shared := SharedMemory()
		reduce(largestWindow/4 + 1)
		require.LessOrEqual(t, SharedMemory(), shared)
	})
}

// What is said to be a window, and is none that could be, is not mapped, and what is put goes another way.
func TestOthersAreNoWindows(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 2)
		var window *block
		groups[0].comm.Reactor().Do(func(p progress) {
			var err error
			window, err = newSharedWindow(p, leastWindow)
			require.NoError(t, err)
		})
		defer func() {
			groups[0].comm.Reactor().Do(func(progress) { require.NoError(t, window.close()) })
		}()
		file, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer file.Close()
		groups[1].comm.Reactor().Do(func(progress) {
			near := groups[1].members[0].near
			good := window.name
			require.Nil(t, near.mapWindow(good), "without a header")
			groups[0].near.cookie++
			require.Equal(t, good, groups[0].nameFor(window, 1))
			groups[0].near.cookie--
			require.Nil(t, near.mapWindow(good), "of another cookie")
			window.named = nil
			groups[0].nameFor(window, 1)
			_, cache := groups[0].cache.shared.Name()
			other := good &^ (1<<descriptorBits - 1)
			for what, name := range map[string]windowName{
				"nothing":           0,
				"other name":        good + 1<<32,
				"other size":        good + 1<<descriptorBits,
				"too large":         good | (1<<sizeBits-1)<<descriptorBits,
				"no descriptor":     other | (1<<descriptorBits - 1),
				"no shared memory":  other | windowName(file.Fd()),
				"the cache instead": other | windowName(cache),
			} {
				require.Nil(t, near.mapWindow(name), what)
			}
			require.Empty(t, near.windows)

			m := near.mapWindow(good)
			require.NotNil(t, m)
			require.Same(t, m, near.mapWindow(good))
			at := window.at(0).Address
			require.Len(t, m.at(at, leastWindow), leastWindow)
			require.Len(t, m.at(at+1, leastWindow-1), leastWindow-1)
			require.NotNil(t, m.at(at+leastWindow, 0))
			for _, wrong := range []struct {
				address uint64
				length  int
			}{{at - 1, 1}, {at, leastWindow + 1}, {at + leastWindow, 1}, {at + leastWindow + 1, 0}, {0, 1}, {1<<64 - 1, 8}} {
				require.Nil(t, m.at(wrong.address, wrong.length), "%+v", wrong)
			}
			m.at(at+5, 1)[0] = 7
			require.EqualValues(t, 7, window.memory[5])

			// No more than a rank has.
			for i := len(near.windows); i < mostWindows; i++ {
				near.windows = append(near.windows, &mapping{})
			}
			require.NoError(t, near.unmapWindow(good))
			require.Len(t, near.windows, mostWindows-1)
			require.Nil(t, m.at(at, 1), "it is not mapped any more")
			require.NoError(t, near.unmapWindow(good), "it is not there any more")
			near.windows = append(near.windows, &mapping{})
			require.Nil(t, near.mapWindow(good))
			near.windows = nil
		})
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
	})
}

// Calls are right while windows are mapped and others are not, as where a rank has more than are mapped.
func TestPutsWithoutWindows(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 3)
		groups[1].comm.Reactor().Do(func(progress) {
			for range mostWindows {
				near := groups[1].members[0].near
				near.windows = append(near.windows, &mapping{})
			}
		})
		defer groups[1].comm.Reactor().Do(func(progress) { groups[1].members[0].near.windows = nil })
		const n = 60_000
		for _, kind := range []string{"scatter", "gather", "allreduce"} {
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				ctx, all, mine := deadline(t), make([]int32, 3*n), make([]int32, n)
				wrong := errors.New("a wrong result of " + kind)
				for i := range all {
					all[i] = int32(i)
				}
				copy(mine, all[rank*n:])
				switch kind {
				case "scatter":
					clear(mine)
					if err := Scatter(ctx, c, all, mine, 0); err != nil {
						return err
					}
					if mine[0] != int32(rank*n) || mine[n-1] != int32(rank*n+n-1) {
						return wrong
					}
				case "gather":
					clear(all)
					if err := Gather(ctx, c, mine, all, 0); err != nil {
						return err
					}
					if rank == 0 && (all[n] != n || all[3*n-1] != 3*n-1) {
						return wrong
					}
				case "allreduce":
					if err := Allreduce(ctx, c, all, all, operator.Sum[int32]()); err != nil {
						return err
					}
					if all[1] != 3 || all[3*n-1] != 3*(3*n-1) {
						return wrong
					}
				}
				return nil
			})
		}
	})
}
