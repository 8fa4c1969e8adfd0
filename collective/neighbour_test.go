package collective

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// neighbours opens the worlds of a job whose ranks map each other's caches, and has them do so.
func neighbours(t *testing.T, size int) (worlds []*comm.Comm, groups []*group) {
	t.Helper()
	worlds = open(t, "shm", size)
	for range 2 * slots {
		everywhere(t, worlds, func(_ int, c *comm.Comm) error {
			buf := make([]int64, size)
			return Alltoall(deadline(t), c, buf, make([]int64, size))
		})
	}
	for _, c := range worlds {
		require.EqualValues(t, size-1, StatsOf(c).Neighbours)
		groups = append(groups, c.Extended().(*group))
	}
	return worlds, groups
}

func onShm(t *testing.T, test func(t *testing.T)) {
	each(t, func(t *testing.T, provider string) {
		if provider == "shm" {
			test(t)
		}
	})
}

// writes is how many writes a rank's device has done.
func writes(c *comm.Comm) uint64 { return c.Reactor().Stats().Writes }

// A ring gives what was put into it, once, in order, and takes no more than it has room for,
// whenever either side comes.
func TestRingAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ring := make([]byte, ringSize)
		out := &outbox{ring: ring}
		type entry struct {
			word uint32
			data []byte
		}
		var queue []entry // the model
		taken := uint64(0)
		// Laps are counted in 32 bits.
		if rapid.Bool().Draw(t, "old") {
			laps := uint64(1<<32 - 1)
			taken = (laps - 1) * ringEntries
			out.sent, out.taken = taken, taken
			atomic.StoreUint64(wordAt(ring, 0), taken)
		}
		told := taken
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				room := ringEntries - int(out.sent-told)
				e := out.entry()
				if e == nil {
					require.LessOrEqual(t, room, 0)
					return
				}
				require.Positive(t, room)
				one := entry{rapid.Uint32().Draw(t, "word"), rapid.SliceOfN(rapid.Byte(), 0, mostData).Draw(t, "data")}
				copy(e[entryData:], one.data)
				binary.LittleEndian.PutUint32(e[12:], uint32(len(one.data)))
				out.stamp(e, one.word)
				queue = append(queue, one)
			},
			"take": func(t *rapid.T) {
				e, word := nextEntry(ring, taken)
				if len(queue) == 0 {
					require.Nil(t, e)
					return
				}
				require.NotNil(t, e)
				require.Equal(t, queue[0].word, word)
				require.True(t, bytes.Equal(queue[0].data, e[entryData:][:binary.LittleEndian.Uint32(e[12:])]))
				queue = queue[1:]
				if taken++; taken%takenEvery == 0 {
					atomic.StoreUint64(wordAt(ring, 0), taken)
					told = taken
				}
			},
		})
	})
}

// What has no room in the ring of a rank that does not look goes by the device.
func TestFullRingOverflows(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds := open(t, "shm", 2)
		const size, chunk = 16 << 10, 256
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Configure(c, Config{Chunk: chunk}) })
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i % 251)
		}
		for range 2 * slots {
			everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
		}
		before := writes(worlds[0])
		q, err := Ibcast(worlds[0], slices.Clone(data), 0)
		require.NoError(t, err)
		require.NoError(t, q.Wait(deadline(t)))
		require.Equal(t, before+size/chunk-ringEntries, writes(worlds[0]))
		got := make([]byte, size)
		require.NoError(t, Bcast(deadline(t), worlds[1], got, 0))
		require.Equal(t, data, got)
	})
}

// A rank whose cache cannot be mapped is put to by the device, and all else is the same.
func TestStrangersAreNotMapped(t *testing.T) {
	// What a rank is told of a cache, which others can repeat.
	invitation := func(g *group) comm.Notice {
		n := comm.Notice{Tag: noticeTag(noticeShared, 0)}
		n.ID, n.Length = g.cache.shared.Name()
		n.Remote.Key, n.Remote.Address = g.near.cookie, g.cacheAddress()
		return n
	}
	onShm(t, func(t *testing.T) {
		for name, change := range map[string]func(n *comm.Notice, groups []*group){
			"another cookie":     func(n *comm.Notice, _ []*group) { n.Remote.Key++ },
			"another process":    func(n *comm.Notice, _ []*group) { n.ID = 1<<64 - 1 },
			"another descriptor": func(n *comm.Notice, _ []*group) { n.Length = 0 },
			"this one's own":     func(n *comm.Notice, groups []*group) { *n = invitation(groups[0]) },
			"another rank's":     func(n *comm.Notice, groups []*group) { *n = invitation(groups[2]) },
		} {
			t.Run(name, func(t *testing.T) {
				worlds, groups := neighbours(t, 3)
				g := groups[0]
				g.comm.Reactor().Do(func(p progress) {
					n := invitation(groups[1])
					require.NoError(t, g.moveOutOf(1))
					change(&n, groups)
					g.invited(p, 1, n)
					assert.Nil(t, g.members[1].near)
				})
				before := writes(worlds[0])
				sum := operator.Sum[int64]()
				everywhere(t, worlds, func(rank int, c *comm.Comm) error {
					out := make([]int64, 3)
					err := Allreduce(deadline(t), c, []int64{1, 2, int64(rank)}, out, sum)
					require.Equal(t, []int64{3, 6, 3}, out)
					return err
				})
				require.Greater(t, writes(worlds[0]), before)
			})
		}
	})
}

// Whatever a rank writes to its ring, nothing breaks here, and no more is taken in at once than
// the ring has.
func TestRingsOfAnything(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds := openFor(t, "shm", 2)
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
		q, err := Ibarrier(worlds[0])
		require.NoError(t, err)
		g := worlds[0].Extended().(*group)
		rapid.Check(t, func(t *rapid.T) {
			fill := rapid.SliceOfN(rapid.Byte(), ringSize, ringSize).Draw(t, "ring")
			stamped := rapid.SliceOfN(rapid.Bool(), ringEntries, ringEntries).Draw(t, "stamped")
			g.comm.Reactor().Do(func(p progress) {
				// What has ended takes nothing in.
				g.failure = nil
				require.NotEmpty(t, g.near.inboxes)
				in := &g.near.inboxes[0]
				copy(in.ring, fill)
				for i, is := range stamped {
					if is {
						at := in.taken + uint64(i)
						e := in.ring[entrySize*(1+at%ringEntries):]
						binary.LittleEndian.PutUint32(e[4:], uint32(at/ringEntries+1))
					}
				}
				before := in.taken
				g.Look(p)
				if len(g.near.inboxes) > 0 {
					require.LessOrEqual(t, g.near.inboxes[0].taken, before+ringEntries)
				}
			})
		})
		onAll(worlds, func(_ int, c *comm.Comm) { _ = c.Close() })
		_ = q.Wait(deadline(t))
	})
}

// The reactor looks while there are calls, and not otherwise.
func TestNobodyLooksWithoutCalls(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 3)
		looking := func() (all []bool) {
			for _, g := range groups {
				g.comm.Reactor().Do(func(p progress) { g.Look(p) })
				g.comm.Reactor().Do(func(progress) { all = append(all, g.near.looking) })
			}
			return all
		}
		require.Equal(t, []bool{false, false, false}, looking())
		q, err := Ibarrier(worlds[1])
		require.NoError(t, err)
		require.Equal(t, []bool{false, true, false}, looking())
		for _, rank := range []int{0, 2} {
			other, err := Ibarrier(worlds[rank])
			require.NoError(t, err)
			defer func() { require.NoError(t, other.Wait(deadline(t))) }()
		}
		require.NoError(t, q.Wait(deadline(t)))
		require.False(t, looking()[1])
	})
}

// Nor when calls have failed, and nothing is waited for any more.
func TestNobodyLooksAfterFailure(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 3)
		looking := func(rank int) (is bool) {
			groups[rank].comm.Reactor().Do(func(p progress) {
				groups[rank].Look(p)
				is = groups[rank].near.looking
			})
			return is
		}
		ctx, giveUp := context.WithCancel(t.Context())
		giveUp()
		require.Error(t, Barrier(ctx, worlds[0]))
		for rank, c := range worlds {
			require.Error(t, Barrier(deadline(t), c))
			require.False(t, looking(rank))
		}
	})
}

// Of many communicators, and of large caches, not all are mapped, and all calls are as they were.
func TestSharedMemoryHasLimits(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds := open(t, "shm", 2)
		call := func(_ int, c *comm.Comm) error {
			out := make([]int64, 5)
			err := Allreduce(deadline(t), c, []int64{1, 2, 3, 4, 5}, out, operator.Sum[int64]())
			if err == nil && !slices.Equal(out, []int64{2, 4, 6, 8, 10}) {
				err = fmt.Errorf("the sum is %v", out)
			}
			return err
		}
		dup := func() []*comm.Comm {
			dups := make([]*comm.Comm, len(worlds))
			everywhere(t, worlds, func(rank int, c *comm.Comm) (err error) {
				dups[rank], err = c.Dup(deadline(t))
				return err
			})
			t.Cleanup(func() {
				for _, c := range dups {
					require.NoError(t, c.Close())
				}
			})
			return dups
		}
		large := dup()
		everywhere(t, large, func(_ int, c *comm.Comm) error {
			return Configure(c, Config{CachePages: largestShared / pageSize})
		})
		everywhere(t, large, call)
		require.Zero(t, StatsOf(large[0]).Neighbours)

		neighbours := 0
		for range mostShared/2 + 5 {
			dups := dup()
			everywhere(t, dups, call)
			neighbours += int(StatsOf(dups[0]).Neighbours)
		}
		require.LessOrEqual(t, sharedBlocks.Load(), int64(mostShared))
		require.Positive(t, neighbours)
		require.LessOrEqual(t, neighbours, mostShared/2)
	})
}

// Puts of every size that goes through the cache arrive, below and above what an entry holds.
func TestNeighboursPutAnySize(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 3)
		before := []uint64{writes(worlds[0]), writes(worlds[1]), writes(worlds[2])}
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(0, groups[0].slot/8/3).Draw(t, "bytes")
			root := rapid.IntRange(0, 2).Draw(t, "root")
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(i + n)
			}
			errs := make([]error, 3)
			got := make([][]byte, 3)
			onAll(worlds, func(rank int, c *comm.Comm) {
				got[rank] = make([]byte, n)
				if rank == root {
					copy(got[rank], data)
				}
				errs[rank] = Bcast(t.Context(), c, got[rank], root)
			})
			for rank := range worlds {
				require.NoError(t, errs[rank])
				require.True(t, slices.Equal(data, got[rank]))
			}
		})
		for rank, c := range worlds {
			require.Equal(t, before[rank], writes(c), "rank %d", rank)
		}
	})
}

// Nothing is left when all ranks have closed: no memory, no descriptor.
func TestSharedMemoryIsGivenBack(t *testing.T) {
	onShm(t, func(t *testing.T) {
		before, ours := SharedMemory(), sharedMappings(t)
		worlds := openFor(t, "shm", 3)
		for _, dup := range []bool{false, true} {
			everywhere(t, worlds, func(_ int, c *comm.Comm) (err error) {
				if dup {
					if c, err = c.Dup(deadline(t)); err != nil {
						return err
					}
					defer func() { err = errors.Join(err, c.Close()) }()
				}
				if err := Allreduce(deadline(t), c, make([]int64, 8), make([]int64, 8), operator.Sum[int64]()); err != nil {
					return err
				}
				// In windows.
				return Reduce(deadline(t), c, make([]int64, 100_000), make([]int64, 100_000), operator.Sum[int64](), 0)
			})
		}
		require.Greater(t, SharedMemory(), before)
		require.Greater(t, sharedMappings(t), ours)
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return c.Close() })
		require.Equal(t, before, SharedMemory())
		require.Equal(t, ours, sharedMappings(t))
	})
}

// sharedMappings is how many mappings, and descriptors, the process has of shared caches, and how many
// descriptors of processes.
func sharedMappings(t *testing.T) int {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	n := strings.Count(string(maps), "memfd:"+sharedName)
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range all {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && (strings.Contains(to, "memfd:"+sharedName) || strings.Contains(to, "pidfd")) {
			n++
		}
	}
	return n
}
