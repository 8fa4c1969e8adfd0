package collective

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// What fits into the cache goes through it, and what does not has memory of its own; there
// may be none at all.
func TestCache(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, pages := range []int{-1, 1, 2} {
			worlds := open(t, provider, 3)
			for _, c := range worlds {
				require.NoError(t, Configure(c, Config{CachePages: pages}))
				require.Error(t, Configure(c, Config{}), "it has one")
			}
			slot := max(pages, 0) * pageSize / slots
			for _, bytes := range []int{0, 8, slot - 8, slot, slot + 8, 2*slot + 8} {
				if bytes < 0 {
					continue
				}
				before := windowsMade(worlds[1])
				want := summed(1, bytes, bytes/8)
				everywhere(t, worlds, func(rank int, c *comm.Comm) error {
					buf := make([]int64, bytes/8)
					if rank == 2 {
						copy(buf, want)
					}
					err := Bcast(deadline(t), c, buf, 2)
					if err == nil && !slices.Equal(buf, want) {
						err = fmt.Errorf("%d bytes with %d pages are others", bytes, pages)
					}
					return err
				})
				require.Equal(t, bytes > slot, windowsMade(worlds[1]) > before, "%d bytes, %d in the cache", bytes, slot)
				forgetWindows(t, worlds)
			}
		}
	})
}

// windowsMade is how many blocks beside the cache a rank has.
func windowsMade(c *comm.Comm) (n int) {
	g := c.Extended().(*group)
	c.Reactor().Do(func(progress) { n = len(g.windows.spare) })
	return n
}

func forgetWindows(t *testing.T, worlds []*comm.Comm) {
	everywhere(t, worlds, func(_ int, c *comm.Comm) (err error) {
		// Everybody is done with them.
		if err = Barrier(t.Context(), c); err == nil {
			c.Reactor().Do(func(progress) { err = c.Extended().(*group).windows.close() })
		}
		return err
	})
}

// Blocks of many lengths do not pile up.
func TestWindowsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		for shift := range 8 {
			everywhere(t, worlds, func(_ int, c *comm.Comm) error {
				buf := make([]byte, 50_000<<shift)
				return Allreduce(deadline(t), c, buf, buf, operator.Xor[byte]())
			})
		}
		for _, c := range worlds {
			require.Equal(t, mostSpare, windowsMade(c))
		}
	})
}

// Nor do few that are long: beside the largest there is no more than spareBytes of them. The
// largest stays, so that a long call and short ones do not drive each other out.
func TestLongWindowsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const page = spareBytes / 8 // the machine has more than that for each test
		for name, test := range map[string]struct{ asked, kept []int }{
			"few that are short":  {[]int{page, 2 * page, page}, []int{2 * page, page}},
			"the oldest go":       {[]int{8 * page, 4 * page, 2 * page, 16 * page}, []int{2 * page, 4 * page, 16 * page}},
			"one is kept":         {[]int{32 * page}, []int{32 * page}},
			"a larger one":        {[]int{16 * page, 32 * page}, []int{32 * page}},
			"short behind long":   {[]int{32 * page, page, 2 * page}, []int{32 * page, page, 2 * page}},
			"the largest is kept": {[]int{32 * page, 8 * page, 4 * page}, []int{32 * page, 4 * page}},
			"also of many": {
				[]int{32 * page, page / 8, page / 4, page / 2, page},
				[]int{32 * page, page / 4, page / 2, page},
			},
		} {
			t.Run(name, func(t *testing.T) {
				world := open(t, provider, 1)[0]
				var kept []int
				var most int
				var err error // a require in the role would end who has it
				world.Reactor().Do(func(p progress) {
					var w windows
					for _, n := range test.asked {
						b, failed := w.take(p, n)
						if err = errors.Join(err, failed); failed != nil {
							break
						}
						most = max(most, n+w.bytes())
						err = errors.Join(err, w.give(b))
					}
					for _, b := range w.spare {
						kept = append(kept, len(b.memory))
					}
					err = errors.Join(err, w.close())
				})
				require.NoError(t, err)
				require.ElementsMatch(t, test.kept, kept)
				require.LessOrEqual(t, most, slices.Max(test.asked)+spareBytes, "while a call has one")
			})
		}
	})
}

// A Config comes before the first call, or not at all.
func TestConfigureComesFirst(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		c := open(t, provider, 1)[0]
		require.NoError(t, Barrier(deadline(t), c))
		var wrong *ConfigError
		require.ErrorAs(t, Configure(c, Config{Fanout: 3}), &wrong)
		require.ErrorContains(t, wrong, "Configure: it comes too late")
		other, err := c.Dup(deadline(t))
		require.NoError(t, err)
		require.NoError(t, Barrier(deadline(t), other))
		require.NoError(t, other.Close())
		require.ErrorIs(t, Configure(other, Config{Fanout: 3}), net.ErrClosed)
	})
}
