package collective

import (
	"slices"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// A call that is refused on a rank has a number there like any other, and nothing to do.
// The other ranks would wait for it: so they are told the number. If that is one of a call
// that was refused on a rank as well, all is as it was; if it makes that call, or has made
// it, the calls of all end.

// refusal is the plan of a call that is refused.
var refusal = new(planned)

// attempts are numbers of calls, as runs of those that follow each other.
type attempts []struct{ first, end uint64 }

// mostAttempts is how many runs are kept of a rank.
const mostAttempts = 64

// add adds the number after those that are there, if there is room for it.
func (a *attempts) add(number uint64) bool {
	if n := len(*a); n > 0 && (*a)[n-1].end == number {
		(*a)[n-1].end++
		return true
	}
	if len(*a) == mostAttempts {
		return false
	}
	*a = append(*a, struct{ first, end uint64 }{number, number + 1})
	return true
}

func (a attempts) has(number uint64) bool {
	for _, run := range a {
		if run.first <= number && number < run.end {
			return true
		}
	}
	return false
}

// dropBefore drops the runs that end before a number.
func (a *attempts) dropBefore(number uint64) {
	n := 0
	for n < len(*a) && (*a)[n].end <= number {
		n++
	}
	*a = slices.Delete(*a, 0, n)
}

// refused is a call that cannot be made on this rank, of which the others are told.
func refused(c *comm.Comm, why error) prepared {
	// Where there is no group to be had, there are no calls of the others either, or this
	// rank has closed the communicator, which they hear of.
	if g, err := groupOf(c, nil); err == nil && g.size > 1 {
		c.Reactor().Do(g.refuse)
	}
	return prepared{err: why}
}

func (g *group) refuse(p progress) {
	if g.failure != nil {
		return
	}
	number := g.next
	if !g.refused.add(number) {
		// Nobody is that far behind, but for one who waits for what will not come.
		g.forgotten = g.refused[0].end
		g.refused = slices.Delete(g.refused, 0, 1)
		g.refused.add(number)
	}
	for rank := range g.members {
		if rank != g.rank && g.members[rank].lost == nil {
			_ = g.comm.Notify(p, rank, comm.Notice{Tag: noticeTag(noticeRefused, number)})
		}
	}
	c := newCall(g, nil, nil, operator.Erased{})
	c.planned = refusal
	g.enqueue(p, c)
}

// checkRefused fails if the call that is next was refused on another rank.
func (g *group) checkRefused(p progress) {
	if !g.warned {
		return
	}
	g.warned = false
	for rank := range g.members {
		r := &g.members[rank].refused
		if r.has(g.next) {
			g.fail(p, &AbortError{Rank: rank, Reason: ReasonArgument})
			return
		}
		r.dropBefore(g.next)
		g.warned = g.warned || len(*r) > 0
	}
}

// noticedRefusal takes in that a call was refused on a rank.
func (g *group) noticedRefusal(p progress, source int, number uint64) {
	if number < g.next {
		if number >= g.forgotten && !g.refused.has(number) {
			g.fail(p, &AbortError{Rank: source, Reason: ReasonArgument})
		}
		return
	}
	r := &g.members[source].refused
	r.dropBefore(g.next)
	g.warned = true
	if !r.add(number) {
		// It is refused one call after the other, and this rank would not make the same.
		g.fail(p, &AbortError{Rank: source, Reason: ReasonArgument})
	}
}

// mismatch is the error where a rank has put something in a call in which this one does not
// wait for it.
func (g *group) mismatch(source int, number uint64, kind schedule.Collective) error {
	if g.refused.has(number) {
		return &AbortError{Rank: g.rank, Reason: ReasonArgument}
	}
	return &MismatchError{source, kind}
}
