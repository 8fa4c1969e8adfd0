package collective

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// A rank that has closed a communicator, and then the world, was done with its calls. Words of these that go
// by the device may be seen after the end of its connection, which goes beside it: a call that waits for one
// ends well. Of words that never come, nobody is waited for.
func TestWordsComeAfterTheEnd(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, comes := range []bool{true, false} {
			worlds := open(t, provider, 2)
			if !worlds[0].Reactor().CanTell() {
				return // Of each write there is a message, and these are in order.
			}
			dups := make([]*comm.Comm, 2)
			everywhere(t, worlds, func(rank int, world *comm.Comm) (err error) {
				if dups[rank], err = world.Dup(deadline(t)); err != nil {
					return err
				}
				return Bcast(deadline(t), dups[rank], make([]int64, 4), 1)
			})
			q, err := Ibcast(dups[0], make([]int64, 4), 1)
			require.NoError(t, err)
			dups[0].Reactor().Do(func(p progress) {
				g := dups[0].Extended().(*group)
				number := g.released
				c := g.active(number)
				require.NotNil(t, c)
				from := &g.members[1]
				require.NoError(t, g.Notice(p, 1, comm.Notice{Tag: noticeTag(noticeClosed, 0), ID: number + 1, Length: from.heard + 1}))
				g.Lost(p, 1, comm.ErrLeft)
				if comes {
					s := c.planned.plan.Steps[c.step]
					require.Equal(t, schedule.Await, s.Action)
					g.Written(p, wordOf(number, 1, s.Number, number))
				}
			})
			err = q.Wait(deadline(t))
			if comes {
				require.NoError(t, err)
			} else {
				requireLost(t, err, 1)
			}
			q, err = Ibcast(dups[0], make([]int64, 4), 1)
			require.NoError(t, err)
			requireLost(t, q.Wait(deadline(t)), 1)
		}
	})
}

func requireLost(t *testing.T, err error, rank int) {
	t.Helper()
	var lost *comm.RankError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, rank, lost.Rank)
	require.ErrorIs(t, err, comm.ErrLeft)
}
