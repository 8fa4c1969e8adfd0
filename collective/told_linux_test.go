package collective

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// What is said of two calls may come by two ways, of which each has its order.
func TestScratchOfTwoCalls(t *testing.T) {
	onShm(t, func(t *testing.T) {
		_, groups := neighbours(t, 2)
		g := groups[1]
		number := g.released
		scratch := func(number, address uint64) comm.Notice {
			return comm.Notice{Tag: noticeTag(noticeScratch, number), Remote: fabric.Remote{Address: address}}
		}
		ready := func(number, address uint64) comm.Notice {
			return comm.Notice{Tag: noticeTag(noticeReady, number), Length: scratchApart, Remote: fabric.Remote{Address: address}}
		}
		groups[0].comm.Reactor().Do(func(progress) {
			assert.True(t, groups[0].notifyNear(1, []comm.Notice{scratch(number, 1000), ready(number, 2000)}, nil))
		})
		g.comm.Reactor().Do(func(p progress) {
			assert.NoError(t, g.Notice(p, 0, scratch(number+1, 3000)))
			for g.takeIn(p, &g.near.inboxes[0]) {
			}
			assert.NoError(t, g.Notice(p, 0, ready(number+1, 4000)))
			from := &g.members[0]
			assert.EqualValues(t, 1000, from.ready[number%slots].scratch.Address)
			assert.EqualValues(t, 2000, from.ready[number%slots].output.Address)
			assert.EqualValues(t, 3000, from.ready[(number+1)%slots].scratch.Address)
			assert.Equal(t, number+2, from.announced)
			// There is none without a notice of its own.
			assert.NoError(t, g.Notice(p, 0, ready(number+2, 5000)))
			assert.Zero(t, from.ready[(number+2)%slots].scratch.Address)
			from.ready, from.announced = [slots]readiness{}, 0
		})
	})
}

// What a rank is told of a call does not come undone by what it is told late of one before, nor is where its
// Scratch was of use to a later one.
func TestToldOutOfTurn(t *testing.T) {
	onShm(t, func(t *testing.T) {
		_, groups := neighbours(t, 2)
		g := groups[1]
		ready := func(number uint64) comm.Notice {
			return comm.Notice{Tag: noticeTag(noticeReady, number), Length: scratchApart, Remote: fabric.Remote{Address: 9}}
		}
		g.comm.Reactor().Do(func(p progress) {
			n, from := g.released, &g.members[0]
			assert.NoError(t, g.Notice(p, 0, comm.Notice{Tag: noticeTag(noticeScratch, n), Remote: fabric.Remote{Address: 1000}}))
			assert.NoError(t, g.Notice(p, 0, ready(n+1)))
			assert.NoError(t, g.Notice(p, 0, ready(n)))
			assert.Equal(t, n+2, from.announced)
			assert.NoError(t, g.Notice(p, 0, ready(n+slots)))
			assert.Zero(t, from.ready[n%slots].scratch.Address)
			from.announced, g.failure = n+2, errClosed
			g.noticedLate(p, from, ready(n))
			assert.Equal(t, n+2, from.announced)
			g.failure, from.ready, from.announced, from.dismissed = nil, [slots]readiness{}, 0, false
		})
	})
}

// A cache can be that of one rank only.
func TestWhoseCacheItIs(t *testing.T) {
	onShm(t, func(t *testing.T) {
		_, groups := neighbours(t, 2)
		g := groups[1]
		g.comm.Reactor().Do(func(progress) {
			from, theirs := &g.members[0], groups[0].near.cookie
			assert.False(t, g.offers(0, g.near.cookie), "this rank's own")
			assert.False(t, g.offers(0, theirs), "known already")
			near := from.near
			from.near = nil
			assert.True(t, g.offers(0, theirs))
			assert.False(t, g.offers(1, theirs), "of another rank of this process")
			from.near = near
		})
	})
}

// Calls whose notices have no room in the ring, beside some that have, end.
func TestReadyByRingAndDevice(t *testing.T) {
	onShm(t, func(t *testing.T) {
		const n, rounds = 40_000, 300
		worlds := open(t, "shm", 2)
		bufs := [2][3][]int32{}
		for rank := range bufs {
			for i := range bufs[rank] {
				bufs[rank][i] = numbersOf(t, 2*n)
			}
		}
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			r := rand.New(rand.NewPCG(1, uint64(rank)))
			long := make([]byte, 4<<20)
			for round := range rounds {
				if rank == 1 {
					for begin, late := time.Now(), time.Duration(r.IntN(10_000)); time.Since(begin) < late; {
						runtime.Gosched()
					}
				}
				// As many pieces as entries, or less.
				q, err := Ibcast(c, long[:256<<10*(8+round%9)], 0)
				requests := []*Request{q}
				for i := 0; err == nil && i < slots-1; i++ {
					q, err = Iallreduce(c, bufs[rank][i][:n], bufs[rank][i][n:], operator.Sum[int32]())
					requests = append(requests, q)
				}
				for i := 0; err == nil && i < len(requests); i++ {
					err = requests[i].Wait(deadline(t))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// A first call that is given up, before it is known what the other one has, ends at once on both, and
// nothing is left of it.
func TestFirstCallIsGivenUp(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds := open(t, "shm", 2)
		before, r := SharedMemory(), rand.New(rand.NewPCG(1, 5))
		for range 60 {
			after := time.Duration(r.IntN(2_500_000))
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				d, err := c.Dup(deadline(t))
				if err != nil {
					return err
				}
				ctx := deadline(t)
				if rank == 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, after)
					defer cancel()
				}
				err = Allreduce(ctx, d, make([]int64, 3<<17), make([]int64, 3<<17), operator.Sum[int64]())
				var flying *efa.InFlightError
				if errors.As(err, &flying) {
					return err
				}
				return d.Close()
			})
			require.Eventually(t, func() bool { return SharedMemory() == before }, patience, time.Millisecond)
		}
	})
}

// What is put to a rank is as much as that hears of, whichever way it goes.
func TestWordsAreCounted(t *testing.T) {
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 2)
		everywhere(t, worlds, func(_ int, c *comm.Comm) error {
			const n = 1 << 20
			return Allreduce(deadline(t), c, make([]int32, n), make([]int32, n), operator.Sum[int32]())
		})
		require.Positive(t, StatsOf(worlds[0]).CrossedBytes)
		var said, heard [2]uint64
		for rank, g := range groups {
			g.comm.Reactor().Do(func(progress) {
				said[rank], heard[1-rank] = g.members[1-rank].words, g.members[1-rank].heard
			})
		}
		require.Equal(t, said, heard)
		require.Positive(t, said[0])
	})
}

// Notices that belong together go together, or not at all.
func TestNoticesWantRoomForAll(t *testing.T) {
	onShm(t, func(t *testing.T) {
		_, groups := neighbours(t, 2)
		g := groups[0]
		g.comm.Reactor().Do(func(progress) {
			m := &g.members[1]
			// Nothing of it is real: the reader is not to look.
			mapped, sent := m.near.ring, m.near.sent
			m.near.ring, m.near.sent, m.near.taken = make([]byte, ringSize), ringEntries-1, 0
			assert.False(t, g.notifyNear(1, make([]comm.Notice, mostNotices), nil))
			assert.EqualValues(t, ringEntries-1, m.near.sent)
			assert.Equal(t, make([]byte, ringSize), m.near.ring)
			assert.True(t, g.notifyNear(1, make([]comm.Notice, 1), nil))
			m.near.ring, m.near.sent, m.near.taken = mapped, sent, sent
		})
	})
}

// Memory of Go's to which a rank may still write that has not said that it does not, is never other
// memory of the program's: a process that is stopped can be let go on after the world is closed here.
func TestStoppedRankMayWrite(t *testing.T) {
	onShm(t, func(t *testing.T) {
		const n = 1 << 20 // more than mostCopied, so that it is put to where the caller has it
		worlds, groups := neighbours(t, 2)
		g := groups[0]
		g.windows.shareable = false
		var window *block
		recv := make([]int64, n)
		q, err := Iallreduce(worlds[0], make([]int64, n), recv, operator.Sum[int64]())
		require.NoError(t, err)
		// The other one stands still.
		groups[1].comm.Reactor().Do(func(progress) {
			g.comm.Reactor().Do(func(p progress) {
				assert.NotNil(t, g.active(g.released).exposed)
				g.fail(p, errors.New("given up"))
				assert.Len(t, g.failed, 1)
				window = g.parked[0]
				g.release(p)
				assert.Empty(t, g.parked)
			})
		})
		// It is mapped still.
		window.memory[0] = 1
		require.NoError(t, window.arena.Close())
		require.Error(t, q.Wait(deadline(t)))
		there, err := operator.Bytes(recv)
		require.NoError(t, err)
		kept.Lock()
		defer kept.Unlock()
		require.Condition(t, func() bool {
			for _, memory := range kept.memory {
				if address(memory) == address(there) {
					return true
				}
			}
			return false
		}, "it is not kept")
	})
}
