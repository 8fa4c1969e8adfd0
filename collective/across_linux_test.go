package collective

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// numbersOf are so many in an arena, which is there until the end of the test.
func numbersOf(t *testing.T, n int) []int32 {
	arena, err := fabric.NewArena(4 * n)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, arena.Close()) })
	all, err := operator.Elements[int32](arena.Bytes()[:4*n])
	require.NoError(t, err)
	return all
}

// In large calls on shm, ranks copy to each other's windows. To memory that is the program's they write in
// the other's process, but where one has something for all others, and where that fails the device does it.
func TestLargeCallsCross(t *testing.T) {
	const size, n = 3, 200 << 10
	onShm(t, func(t *testing.T) {
		sum := operator.Sum[int32]()
		call := func(kind schedule.Collective, rank int, c *comm.Comm, mine, got []int32) error {
			ctx, all := deadline(t), make([]int32, size*n)
			for i := range mine {
				mine[i] = int32(rank*n + i)
			}
			for i := range all {
				all[i] = int32(rank*size*n + i)
			}
			clear(got)
			want := func(f func(i int) int32, got []int32) error {
				for i, v := range got {
					if v != f(i) {
						return errors.New("a wrong result")
					}
				}
				return nil
			}
			total := func(i int) int32 { return int32(size*(size-1)/2*n + size*i) }
			switch kind {
			case schedule.CollectiveBcast:
				return errors.Join(Bcast(ctx, c, mine, 0), want(func(i int) int32 { return int32(i) }, mine))
			case schedule.CollectiveScatter:
				return errors.Join(Scatter(ctx, c, all, mine, 0), want(func(i int) int32 { return int32(rank*n + i) }, mine))
			case schedule.CollectiveReduce:
				if err := Reduce(ctx, c, mine, got[:n], sum, 0); err != nil || rank > 0 {
					return err
				}
				return want(total, got[:n])
			case schedule.CollectiveAllreduce:
				return errors.Join(Allreduce(ctx, c, mine, got[:n], sum), want(total, got[:n]))
			case schedule.CollectiveGather:
				if err := Gather(ctx, c, mine, got, 0); err != nil || rank > 0 {
					return err
				}
				return want(func(i int) int32 { return int32(i) }, got)
			case schedule.CollectiveAllgather:
				return errors.Join(Allgather(ctx, c, mine, got), want(func(i int) int32 { return int32(i) }, got))
			case schedule.CollectiveReduceScatter:
				err := ReduceScatter(ctx, c, all, got[:n], sum)
				return errors.Join(err, want(func(i int) int32 { return int32(size*(size-1)/2*size*n + size*(rank*n+i)) }, got[:n]))
			case schedule.CollectiveAlltoall:
				err := Alltoall(ctx, c, all, got)
				return errors.Join(err, want(func(i int) int32 { return int32(i/n*size*n + rank*n + i%n) }, got))
			}
			return nil
		}
		worlds, groups := neighbours(t, size)
		program := make([][]int32, size)
		for rank := range program {
			program[rank] = numbersOf(t, (1+size)*n)
		}
		// calls makes a call on all ranks, and says how much they have put themselves, and how many
		// times the device.
		calls := func(kind schedule.Collective, arena bool) (bytes, device uint64) {
			for _, c := range worlds {
				bytes, device = bytes-StatsOf(c).CrossedBytes, device-writes(c)
			}
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				memory := make([]int32, (1+size)*n)
				if arena {
					memory = program[rank]
				}
				return call(kind, rank, c, memory[:n], memory[n:])
			})
			for _, c := range worlds {
				bytes, device = bytes+StatsOf(c).CrossedBytes, device+writes(c)
			}
			return bytes, device
		}
		for _, arena := range []bool{false, true} {
			for _, c := range []struct {
				kind   schedule.Collective
				blocks uint64 // that are put
			}{
				{schedule.CollectiveBcast, size - 1},
				{schedule.CollectiveScatter, size - 1},
				{schedule.CollectiveReduce, size - 1},
				{schedule.CollectiveGather, size - 1},
				{schedule.CollectiveAllgather, size * (size - 1)},
				{schedule.CollectiveReduceScatter, size * (size - 1)},
				{schedule.CollectiveAlltoall, size * (size - 1)},
				{schedule.CollectiveAllreduce, 2 * (size - 1)},
				{schedule.CollectiveBarrier, 0},
			} {
				bytes, device := calls(c.kind, arena)
				if arena && !crossing(c.kind) {
					require.Zero(t, bytes, c.kind.String())
					require.Positive(t, device, c.kind.String())
					continue
				}
				require.Equal(t, c.blocks*4*n, bytes, c.kind.String())
				require.Zero(t, device, c.kind.String())
			}
		}

		// The process that rank 0 is put to by is another one, which has ended.
		other := sleeper(t)
		for _, g := range groups[1:] {
			g.comm.Reactor().Do(func(progress) {
				require.NoError(t, g.members[0].near.detach())
				a, err := attachmentOf(other.Process.Pid)
				require.NoError(t, err)
				g.members[0].near.process = a
			})
		}
		require.NoError(t, other.Process.Kill())
		require.Error(t, other.Wait())
		bytes, device := calls(schedule.CollectiveGather, true)
		require.Zero(t, bytes)
		pieces := (4*n + defaultChunk - 1) / defaultChunk
		require.EqualValues(t, (size-1)*pieces, device)
	})
}

// Results of more than 2 MiB go through windows where the kernel takes longer for one copy than two of these do, and
// otherwise straight to the caller's memory. Shorter ones stay in caches.
func TestLongResultsWhereTheKernelIsQuick(t *testing.T) {
	const size = 3
	onShm(t, func(t *testing.T) {
		for _, quick := range []bool{false, true} {
			for _, bytes := range []int{mostCopied, mostCopied + 8*size, 5 << 20} {
				worlds, groups := neighbours(t, size)
				for _, g := range groups {
					g.comm.Reactor().Do(func(progress) { g.quickKernel = func() bool { return quick } })
				}
				n := bytes / 8 / size
				everywhere(t, worlds, func(rank int, c *comm.Comm) error {
					ctx := deadline(t)
					all, mine := make([]int64, size*n), operand(rank, 0, n)
					want := slices.Concat(operand(0, 0, n), operand(1, 0, n), operand(2, 0, n))
					if err := Allgather(ctx, c, mine, all); err != nil {
						return err
					}
					require.Equal(t, want, all)
					other := make([]int64, size*n)
					if err := Alltoall(ctx, c, all, other); err != nil {
						return err
					}
					require.Equal(t, slices.Repeat(operand(rank, 0, n), size), other)
					clear(other)
					if err := Gather(ctx, c, mine, other, 2); err != nil {
						return err
					}
					if rank == 2 {
						require.Equal(t, want, other)
					}
					if bytes < leastPast {
						return nil // the pieces of a Bcast are short, and copied
					}
					clear(other)
					if rank == 1 {
						copy(other, want)
					}
					if err := Bcast(ctx, c, other, 1); err != nil {
						return err
					}
					require.Equal(t, want, other)
					return nil
				})
				for rank, g := range groups {
					g.comm.Reactor().Do(func(progress) {
						require.Equal(t, quick && bytes > mostCopied, len(g.windows.spare) == 0, "rank %d, %d bytes, %v", rank, bytes, quick)
					})
				}
			}
		}
	})
}

// A rank that has failed, and so looks at no ring, still says that it writes no more to memory of which
// it was told there.
func TestFailureIsHeardOfByRing(t *testing.T) {
	const n = 200 << 10
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 2)
		failed := errors.New("failed")
		q, err := Igather(worlds[0], make([]int32, n), numbersOf(t, 2*n), 0)
		require.NoError(t, err)
		require.Eventually(t, func() (told bool) {
			groups[0].comm.Reactor().Do(func(progress) {
				c := groups[0].active(groups[0].released)
				told = c != nil && c.toldNear && c.told
			})
			return told
		}, time.Minute, time.Millisecond)
		groups[1].comm.Reactor().Do(func(p progress) {
			require.Zero(t, groups[1].members[0].announced)
			groups[1].fail(p, failed)
		})
		err = q.Wait(deadline(t))
		var abort *AbortError
		require.ErrorAs(t, err, &abort)
		var still *efa.InFlightError
		require.False(t, errors.As(err, &still), "%v", err)
	})
}

// What a rank has to know by the device comes before what it finds in its ring.
func TestNoticesInRingWaitForIntroduction(t *testing.T) {
	onShm(t, func(t *testing.T) {
		_, groups := neighbours(t, 2)
		look := func(known bool) (found bool, number uint64) {
			groups[1].comm.Reactor().Do(func(p progress) {
				groups[1].members[0].known = known
				for i := range groups[1].near.inboxes {
					found = groups[1].takeIn(p, &groups[1].near.inboxes[i])
				}
				number = groups[1].members[0].announced
			})
			return found, number
		}
		groups[0].comm.Reactor().Do(func(progress) {
			require.True(t, groups[0].notifyNear(1, []comm.Notice{{Tag: noticeTag(noticeReady, groups[0].next)}}, nil))
		})
		found, number := look(false)
		require.False(t, found)
		require.Zero(t, number)
		found, number = look(true)
		require.True(t, found)
		require.Equal(t, groups[0].next+1, number)
	})
}
