package collective

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// Ranks that write to each other hear by that what is released, and send no notices.
func TestExchangesNeedNoNotices(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		worlds := open(t, provider, 2)
		if !worlds[0].Reactor().CanTell() {
			return // Of each write, there is a notice.
		}
		call := func(rank int, c *comm.Comm) error {
			buf := make([]int64, 4)
			return Allreduce(deadline(t), c, buf, buf, operator.Sum[int64]())
		}
		// They tell each other where their caches are.
		for range 2 * slots {
			everywhere(t, worlds, call)
		}
		before := worlds[0].Reactor().Stats()
		const calls = 100
		for range calls {
			everywhere(t, worlds, call)
		}
		after := worlds[0].Reactor().Stats()
		require.Equal(t, before.Sent, after.Sent)
		writes := uint64(calls)
		if worlds[0].Reactor().SameHost() {
			writes = 0 // The caches are mapped.
		}
		require.Equal(t, before.Writes+writes, after.Writes)
	})
}

// A word says what it was made of, to a rank that is not behind its sender by too much, nor
// ahead of it.
func TestWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 100).Draw(t, "size")
		source := rapid.IntRange(0, size-1).Draw(t, "source")
		put := rapid.IntRange(0, mostWordNumber-1).Draw(t, "put")
		mine := rapid.Uint64Range(0, 1000).Draw(t, "released here")
		number := mine + rapid.Uint64Range(0, slots-1).Draw(t, "ahead")
		theirs := number - min(number, rapid.Uint64Range(0, slots-1).Draw(t, "behind"))
		word := wordOf(number, source, put, theirs)
		require.Zero(t, word>>comm.WordBits)

		g := &group{size: size, released: mine, members: make([]member, size)}
		for i := range g.arrivals {
			g.arrivals[i] = make([]arrivalSet, size)
		}
		g.Written(progress{}, word)
		require.True(t, g.arrivals[number%slots][source].has(put))
		require.Equal(t, 1, g.counts[number%slots])
		if put < fewNumbers {
			require.Equal(t, theirs, g.members[source].released)
		} else {
			require.Zero(t, g.members[source].released)
		}
	})
}
