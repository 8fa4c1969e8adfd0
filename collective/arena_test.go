package collective

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// larder is an arena that is handed out from both of its ends, at places that are no
// better aligned than they must be.
type larder struct {
	arena      *fabric.Arena
	front, end int
	takes      int
}

func newLarder(size int) (*larder, error) {
	a, err := fabric.NewArena(size)
	if err != nil {
		return nil, err
	}
	l := &larder{arena: a}
	l.empty()
	return l, nil
}

// empty takes all back.
func (l *larder) empty() { l.front, l.end = 0, len(l.arena.Bytes()) }

func (l *larder) isEmpty() bool { return l.front == 0 && l.end == len(l.arena.Bytes()) }

// take is a part of the arena, or nil if there is too little left.
func (l *larder) take(n, alignment int) []byte {
	l.takes++
	if l.front+n+2*alignment > l.end {
		return nil
	}
	if l.takes%2 == 0 {
		l.end = (l.end - n) / alignment * alignment
		return l.arena.Bytes()[l.end : l.end+n : l.end+n]
	}
	first := (l.front + alignment - 1) / alignment * alignment
	l.front = first + n + alignment
	return l.arena.Bytes()[first : first+n : first+n]
}

// room is where a trial has n elements.
func room[T any](t trial, n int) []T {
	if t.larder != nil {
		b := t.larder.take(n*sizeOf[T](), int(unsafe.Alignof(*new(T))))
		if s, err := operator.Elements[T](b); err == nil && len(s) == n {
			return s
		}
	}
	return make([]T, n)
}

// Calls give what a serial fold does, whichever ranks have their data in arenas, and
// wherever there.
func TestArenas(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, size := range sizes(provider)[1:] {
			worlds := open(t, provider, size)
			larders := make([]*larder, size)
			for rank := range larders {
				var err error
				larders[rank], err = newLarder(1 << 20)
				require.NoError(t, err)
			}
			seed := uint64(size)
			for _, k := range kinds {
				s := subjects[int(scramble(seed)%uint64(len(subjects)))]
				for i, a := range append(k.algorithms(s), schedule.Default) {
					seed++
					all := trial{kind: k, root: i % k.roots(size), bytes: 200_000, seed: scramble(seed), algorithm: a}
					all.inPlace = all.seed&2 == 0
					// All ranks, or some.
					with := all.seed >> 8
					if i%2 == 0 {
						with = 1<<size - 1
					}
					everywhere(t, worlds, func(rank int, c *comm.Comm) error {
						mine := all
						if with>>rank&1 == 1 {
							mine.larder = larders[rank]
							mine.larder.empty()
						}
						at := s.attempt(c, mine)
						return ended(s, mine, at, at.run(deadline(t)))
					})
				}
			}
			// They stay registered while nobody uses them, which is no reason to keep them.
			for _, l := range larders {
				require.NoError(t, l.arena.Close())
			}
			everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
		}
	})
}

// arenaOf is an arena of so many numbers.
func arenaOf(t *testing.T, n int) (*fabric.Arena, []int64) {
	a, err := fabric.NewArena(8 * n)
	require.NoError(t, err)
	s, err := operator.Elements[int64](a.Bytes()[:8*n])
	require.NoError(t, err)
	return a, s
}

// What is in an arena is not copied: a call takes no more registered memory than its
// Scratch has.
func TestArenaIsNotCopied(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		const n = 50_000
		arenas := make([]*fabric.Arena, 2)
		bufs := make([][]int64, 2)
		for rank := range bufs {
			arenas[rank], bufs[rank] = arenaOf(t, 2*n)
		}
		everywhere(t, worlds, func(rank int, c *comm.Comm) error {
			buf := bufs[rank]
			ctx := deadline(t)
			return errors.Join(Allgather(ctx, c, buf[rank*n:][:n], buf), Bcast(ctx, c, buf[n:], 1),
				Alltoall(ctx, c, buf[:n], buf[n:]))
		})
		for rank, c := range worlds {
			require.Empty(t, c.Extended().(*group).windows.spare, "rank %d", rank)
		}
		for _, a := range arenas {
			require.NoError(t, a.Close())
		}
	})
}

// Slices that have some elements in common are not in place, wherever they are.
func TestArenaOverlaps(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		const n = 20_000
		for _, shift := range []int{0, 1, n - 1} {
			everywhere(t, worlds, func(rank int, c *comm.Comm) error {
				a, all := arenaOf(t, n+shift)
				copy(all, operand(rank, 0, n))
				if err := Allreduce(deadline(t), c, all[:n], all[shift:], operator.Sum[int64]()); err != nil {
					return err
				}
				require.Equal(t, summed(2, 0, n), all[shift:], "%d", shift)
				return a.Close()
			})
		}
	})
}

// A call that is given up gives the arena back when the others have said that they write
// no more.
func TestArenaAfterAFailure(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const n = 20_000
		worlds := open(t, provider, 3)
		ctx, cancel := context.WithCancel(deadline(t))
		errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
			a, buf := arenaOf(t, n)
			if err := Allreduce(ctx, c, buf, buf, operator.Sum[int64]()); err != nil {
				return err
			}
			if rank == 2 {
				for from := range 2 {
					if _, err := c.Recv(deadline(t), nil, from, 1); err != nil {
						return err
					}
				}
				// The others have told it where their memory is, or will.
				cancel()
				return a.Close()
			}
			err := c.Send(deadline(t), nil, 2, 1)
			require.NoError(t, err)
			err = Allreduce(ctx, c, buf, buf, operator.Sum[int64]())
			var in *efa.InFlightError
			if errors.As(err, &in) {
				return errors.New("it is in use although all ranks are there")
			}
			require.Error(t, err)
			return a.Close()
		})
		for rank, err := range errs {
			require.NoError(t, err, "rank %d", rank)
		}
	})
}

// A rank that is done with the call in which others fail says that it writes no more, too.
func TestArenaOfARankThatIsDone(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const n = 20_000
		worlds := open(t, provider, 3)
		errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
			switch rank {
			case 1:
				if err := Gather(deadline(t), c, make([]int64, n), nil, 0, WithAlgorithm(schedule.Direct)); err != nil {
					return err
				}
				return c.Send(deadline(t), nil, 2, 1)
			case 2:
				if _, err := c.Recv(deadline(t), nil, 1, 1); err != nil {
					return err
				}
				g, err := groupOf(c, nil)
				if err == nil {
					c.Reactor().Do(func(p progress) { g.fail(p, errors.New("enough")) })
				}
				return err
			}
			a, buf := arenaOf(t, 3*n)
			err := Gather(deadline(t), c, make([]int64, n), buf, 0, WithAlgorithm(schedule.Direct))
			var in *efa.InFlightError
			require.NotErrorAs(t, err, &in)
			requireAborted(t, c, err, 2, ReasonFailed)
			return a.Close()
		})
		for rank, err := range errs {
			require.NoError(t, err, "rank %d", rank)
		}
	})
}

// A communicator that is closed amid a call gives the arena back as one that fails does.
func TestArenaOfAClosedCommunicator(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const n = 20_000
		worlds := open(t, provider, 2)
		dups := make([]*comm.Comm, 2)
		everywhere(t, worlds, func(rank int, world *comm.Comm) (err error) {
			if dups[rank], err = world.Dup(deadline(t)); err != nil {
				return err
			}
			return Barrier(deadline(t), dups[rank])
		})
		a, buf := arenaOf(t, n)
		q, err := Iallreduce(dups[0], buf, buf, operator.Sum[int64]())
		require.NoError(t, err)
		require.NoError(t, dups[0].Close())
		err = q.Wait(deadline(t))
		require.ErrorIs(t, err, net.ErrClosed)
		var in *efa.InFlightError
		require.NotErrorAs(t, err, &in)
		require.NoError(t, a.Close())
		requireAborted(t, dups[1], Barrier(deadline(t), dups[1]), 0, ReasonClosed)
	})
}

// Memory that a lost rank was told of is in use until the world is closed.
func TestArenaOfALostRank(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const n = 20_000
		c := openFor(t, provider, 2)
		a, buf := arenaOf(t, n)
		q, err := Iallreduce(c[0], buf, buf, operator.Sum[int64]())
		require.NoError(t, err)
		g := c[0].Extended().(*group)
		c[0].Reactor().Do(func(p progress) { g.Lost(p, 1, efa.ErrPeerLost) })
		err = q.Wait(deadline(t))
		var lost *comm.RankError
		require.ErrorAs(t, err, &lost)
		var in *efa.InFlightError
		require.ErrorAs(t, err, &in)
		require.ErrorIs(t, a.Close(), fabric.ErrBusy)
		select {
		case <-in.Released:
			t.Fatal("nobody knows whether the rank still writes")
		default:
		}
		onAll(c, func(_ int, c *comm.Comm) { require.NoError(t, c.Close()) })
		<-in.Released
		require.NoError(t, a.Close())
	})
}

// Whoever gives a call up gets the memory back later with the reason that he gave.
func TestArenaOfACallGivenUp(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const n = 20_000
		c := openFor(t, provider, 2)
		a, buf := arenaOf(t, n)
		g, err := groupOf(c[0], nil)
		require.NoError(t, err)
		is := func(what func() bool) {
			t.Helper()
			require.Eventually(t, func() (so bool) {
				c[0].Reactor().Do(func(progress) { so = what() })
				return so
			}, 30*time.Second, time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- Allreduce(ctx, c[0], buf, buf, operator.Sum[int64]()) }()
		is(func() bool { return g.members[1].shown > 0 })
		cancel()
		is(func() bool { return g.failure != nil })
		c[0].Reactor().Do(func(p progress) { g.Lost(p, 1, efa.ErrPeerLost) })
		err = <-ended
		var in *efa.InFlightError
		require.ErrorAs(t, err, &in)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, in.Err, context.Canceled)
		onAll(c, func(_ int, c *comm.Comm) { require.NoError(t, c.Close()) })
		<-in.Released
		require.NoError(t, a.Close())
	})
}

// Memory that a lost rank was not told of is in use only until the others write no more.
func TestArenaAfterALostRank(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const n = 20_000
		worlds := open(t, provider, 3)
		gather := func(rank int, c *comm.Comm, buf []int64) error {
			return Gather(deadline(t), c, make([]int64, n), buf, 0, WithAlgorithm(schedule.Direct))
		}
		everywhere(t, worlds, func(rank int, c *comm.Comm) error { return gather(rank, c, make([]int64, 3*n)) })
		g := worlds[0].Extended().(*group)
		worlds[0].Reactor().Do(func(p progress) { g.Lost(p, 1, comm.ErrLeft) })
		a, buf := arenaOf(t, 3*n)
		errs := errorsOf(worlds, func(rank int, c *comm.Comm) error {
			if rank == 1 {
				return nil
			}
			return gather(rank, c, buf)
		})
		var lost *comm.RankError
		require.ErrorAs(t, errs[0], &lost)
		require.Equal(t, 1, lost.Rank)
		var in *efa.InFlightError
		require.NotErrorAs(t, errs[0], &in)
		require.NoError(t, a.Close())
	})
}

// Words that are still to come keep the memory in use, and their arrival ends that.
func TestArenaWaitsForWords(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		const n = 20_000
		worlds := open(t, provider, 2)
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
		a, buf := arenaOf(t, n)
		q, err := Iallreduce(worlds[0], buf, buf, operator.Sum[int64]())
		require.NoError(t, err)
		g := worlds[0].Extended().(*group)
		from := &g.members[1]
		var failed, stopped error
		var done []bool
		worlds[0].Reactor().Do(func(p progress) {
			failed = g.Notice(p, 1, comm.Notice{Tag: noticeTag(noticeFailed, 0), ID: uint64(ReasonFailed), Length: 1})
			done = append(done, q.call.done.Load())
			stopped = g.Notice(p, 1, comm.Notice{Tag: noticeTag(noticeStopped, 0), ID: from.heard + 2})
			for range 2 {
				done = append(done, q.call.done.Load())
				g.Written(p, wordOf(0, 1, 0, 0))
			}
			done = append(done, q.call.done.Load())
		})
		require.NoError(t, failed)
		require.NoError(t, stopped)
		require.Equal(t, []bool{false, false, false, true}, done)
		err = q.Wait(deadline(t))
		var in *efa.InFlightError
		require.NotErrorAs(t, err, &in)
		require.NoError(t, a.Close())
		// A call of rank 1 would write into what rank 0 has shown it, until it hears of the end.
		other := worlds[1].Extended().(*group)
		require.Eventually(t, func() (ended bool) {
			worlds[1].Reactor().Do(func(progress) { ended = other.failure != nil })
			return ended
		}, patience, time.Millisecond)
	})
}

// A call that has all that it needs of a rank waits for others, maybe for ever. It ends with
// the rank.
func TestCallEndsWithALostRank(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 3)
		everywhere(t, worlds, func(_ int, c *comm.Comm) error { return Barrier(deadline(t), c) })
		const root, dead = 1, 2
		q, err := Igather(worlds[root], make([]int64, 1), make([]int64, 3), root)
		require.NoError(t, err)
		require.NoError(t, Gather(deadline(t), worlds[dead], make([]int64, 1), nil, root))
		g := worlds[root].Extended().(*group)
		worlds[root].Reactor().Do(func(p progress) { g.Lost(p, dead, efa.ErrPeerLost) })
		var lost *comm.RankError
		require.ErrorAs(t, q.Wait(deadline(t)), &lost)
		require.Equal(t, dead, lost.Rank)
		var aborted *AbortError
		require.ErrorAs(t, Barrier(deadline(t), worlds[0]), &aborted)
		require.Equal(t, AbortError{Rank: root, Reason: ReasonLost, Lost: dead}, *aborted)
	})
}
