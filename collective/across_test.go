package collective

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
)

// In large calls on shm ranks write to each other's processes, but where one has something for all
// others, and where that fails the device does it.
func TestLargeCallsCross(t *testing.T) {
	const size, n = 3, 200 << 10
	onShm(t, func(t *testing.T) {
		sum := operator.Sum[int32]()
		call := func(kind schedule.Collective, rank int, c *comm.Comm) error {
			ctx, mine, all, got := deadline(t), make([]int32, n), make([]int32, size*n), make([]int32, size*n)
			for i := range mine {
				mine[i] = int32(rank*n + i)
			}
			for i := range all {
				all[i] = int32(rank*size*n + i)
			}
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
		crossed := func(worlds []*comm.Comm) (sum, device uint64) {
			for _, c := range worlds {
				sum += StatsOf(c).CrossedBytes
				device += writes(c)
			}
			return sum, device
		}
		worlds, groups := neighbours(t, size)
		// Less than a ring has room for.
		for _, c := range []struct {
			kind   schedule.Collective
			blocks uint64 // that are put
		}{
			{schedule.CollectiveBcast, 0}, {schedule.CollectiveScatter, 0}, {schedule.CollectiveReduce, size - 1},
			{schedule.CollectiveGather, size - 1}, {schedule.CollectiveAllgather, size * (size - 1)},
			{schedule.CollectiveReduceScatter, size * (size - 1)}, {schedule.CollectiveAlltoall, size * (size - 1)},
			{schedule.CollectiveAllreduce, 2 * (size - 1)}, {schedule.CollectiveBarrier, 0},
		} {
			bytes, device := crossed(worlds)
			everywhere(t, worlds, func(rank int, w *comm.Comm) error { return call(c.kind, rank, w) })
			more, moreDevice := crossed(worlds)
			require.Equal(t, c.blocks*4*n, more-bytes, c.kind.String())
			if crossing(c.kind) {
				require.Equal(t, device, moreDevice, c.kind.String())
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
		bytes, device := crossed(worlds)
		everywhere(t, worlds, func(rank int, w *comm.Comm) error { return call(schedule.CollectiveGather, rank, w) })
		more, moreDevice := crossed(worlds)
		require.Equal(t, bytes, more)
		require.Equal(t, device+size-1, moreDevice)
	})
}

// A rank that has failed, and so looks at no ring, still says that it writes no more to memory of which
// it was told there.
func TestFailureIsHeardOfByRing(t *testing.T) {
	const n = 200 << 10
	onShm(t, func(t *testing.T) {
		worlds, groups := neighbours(t, 2)
		failed := errors.New("failed")
		q, err := Igather(worlds[0], make([]byte, n), make([]byte, 2*n), 0)
		require.NoError(t, err)
		told := false
		for !told {
			groups[0].comm.Reactor().Do(func(progress) {
				c := groups[0].active(groups[0].released)
				told = c != nil && c.toldNear && c.told
			})
		}
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
			require.True(t, groups[0].notifyNear(1, []comm.Notice{{Tag: noticeTag(noticeReady, groups[0].next)}}))
		})
		found, number := look(false)
		require.False(t, found)
		require.Zero(t, number)
		found, number = look(true)
		require.True(t, found)
		require.Equal(t, groups[0].next+1, number)
	})
}
