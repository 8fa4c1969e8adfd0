package cost

import (
	"fmt"
	"slices"

	"github.com/weft-go/weft/collective/schedule"
)

// What ranks tell each other beside the plans, by the last numbers of a call: that they are
// ready for it, and that they are done with it and can be put to again.
const (
	ready = -1
	done  = -2
	// told is how many numbers these are.
	told = 2
	// A rank says that it is done, by a notice, when it has not said so for every calls, and
	// whoever puts to it needs to know it later calls after that one. What it puts to that
	// rank meanwhile says it, too.
	every = 3
	later = 2
)

// between are two ranks.
type between struct{ from, to int }

// sayDone is what a rank tells of those that have put to it in the nth call of a row.
func (r *run) sayDone(rank, nth int, targets, sources []int32, notice func(schedule.Action, int32, int), number int) {
	for _, peer := range targets {
		// The word has how many calls were done before this one.
		r.said[between{rank, int(peer)}] = nth
	}
	for _, peer := range sources {
		pair := between{rank, int(peer)}
		if r.said[pair]+every <= nth+1 {
			r.said[pair] = nth + 1
			notice(schedule.Signal, peer, number)
			r.released[nth][peer] = append(r.released[nth][peer], int32(rank))
		}
	}
}

// add appends a call, the nth of a row, to what the ranks do: its plan, and what package
// collective does beside that.
func (r *run) add(call schedule.Call, element, nth int) error {
	scratch, err := call.MostScratch()
	if err != nil {
		return err
	}
	output := outputOf(call)
	large := r.Slot > 0 && (output+scratch)*element > r.Slot
	direct := large && r.direct(call, element)
	// Large calls have nothing in the slots.
	releases := !large && r.said != nil
	r.released = append(r.released, nil)
	if releases {
		r.released[nth] = make([][]int32, call.Size)
	}
	first, end := nth*r.numbers, (nth+1)*r.numbers
	for i := range r.ranks {
		me, rank := &r.ranks[i], r.first+i
		plan, err := call.Plan(rank)
		if err != nil {
			return err
		}
		me.steps = slices.Grow(me.steps, len(plan.Steps)+told)
		notice := func(action schedule.Action, peer int32, number int) {
			me.steps = append(me.steps, step{action: action, peer: peer, number: int32(number), notice: true})
		}
		release := func(action schedule.Action, peer int32, number int) {
			notice(action, peer, number)
			me.steps[len(me.steps)-1].notice = !r.Mapped
		}
		me.steps = append(me.steps, step{action: entered})
		if nth >= later && r.released[nth-later] != nil {
			for _, peer := range r.released[nth-later][rank] {
				release(schedule.Await, peer, first-(later-1)*r.numbers+done)
			}
		}
		if large {
			for _, peer := range peersOf(plan, schedule.Await) {
				release(schedule.Signal, peer, end+ready)
			}
		}
		handed, err := r.hands(call, rank, element, large)
		if err != nil {
			return err
		}
		h := handing{left: output}
		if handed {
			h.begin(plan, large)
		}
		fetched := direct && r.fetches(call.Collective)
		steps := plan.Steps
		if fetched {
			steps = copiesFirst(steps)
		}
		for j := range steps {
			s := &steps[j]
			if s.Action == schedule.Await {
				me.steps = h.add(me.steps, element)
				h.come(s.Dst)
			}
			if most := r.numbers - told; s.Number >= most {
				return &schedule.ArgumentError{Name: "number of puts to a rank", Value: s.Number + 1, Want: fmt.Sprintf("up to %d", most)}
			}
			if large && s.Action == schedule.Put && s.Number == 0 {
				release(schedule.Await, int32(s.Peer), end+ready)
			}
			me.steps = append(me.steps, step{
				action: s.Action, peer: int32(s.Peer), number: int32(first + s.Number),
				bytes: float64(s.Dst.Length) * float64(element),
				fetch: fetched, direct: direct && s.Dst.Space == schedule.Output,
			})
		}
		if releases {
			targets := append(peersOf(plan, schedule.Put), peersOf(plan, schedule.Signal)...)
			r.sayDone(rank, nth, targets, peersOf(plan, schedule.Await), release, end+done)
		}
		me.steps = h.add(me.steps, element)
		if handed && h.left > 0 {
			// When all that the rank puts is there.
			me.steps = append(me.steps, step{action: schedule.Settle}, step{action: schedule.Copy, bytes: float64(h.left) * float64(element)})
		}
		me.steps = append(me.steps, step{action: ended})
	}
	return nil
}

// copiesFirst has a rank copy what it keeps before it puts, up to where it has to wait: the device gets what a rank puts
// when that has done all that it can do, and only then others fetch it.
func copiesFirst(steps []schedule.Step) []schedule.Step {
	sorted := make([]schedule.Step, 0, len(steps))
	puts := 0 // at the end of sorted
	for _, s := range steps {
		switch s.Action {
		case schedule.Put, schedule.Signal:
			sorted = append(sorted, s)
			puts++
		case schedule.Copy:
			sorted = slices.Insert(sorted, len(sorted)-puts, s)
		default:
			sorted = append(sorted, s)
			puts = 0
		}
	}
	return sorted
}

// handing is what a rank copies to the caller: what is left at the end, and before, in a large call, what
// others have put there.
type handing struct {
	left  int             // in units
	given []schedule.Span // before the end
	came  []int           // and is not copied yet
}

func (h *handing) begin(plan schedule.Plan, large bool) {
	for _, kept := range plan.Kept() {
		h.left -= kept.Length
	}
	if large {
		h.given = plan.Given()
	}
	for _, given := range h.given {
		h.left -= given.Length
	}
}

// come notes what an Await is for.
func (h *handing) come(s schedule.Span) {
	if s.Space != schedule.Output || s.Length == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(h.given, s.Offset, func(given schedule.Span, offset int) int { return given.Offset - offset })
	if found && h.given[i] == s {
		h.came = append(h.came, s.Length)
	}
}

// add has a rank copy what came.
func (h *handing) add(steps []step, element int) []step {
	for _, units := range h.came {
		steps = append(steps, step{action: schedule.Copy, bytes: float64(units) * float64(element), given: true})
	}
	h.came = h.came[:0]
	return steps
}

// direct says whether a result of a large call is put where the caller wants it.
func (r *run) direct(call schedule.Call, element int) bool {
	least := r.Direct
	if r.Mapped && r.LocalByCore && call.Collective != schedule.CollectiveAllreduce {
		least = r.DirectMoved
	}
	return least > 0 && outputOf(call)*element >= least
}

// fetches says whether the ranks of a node that are put to move the data, if it is directly: where one
// has something for all others, they do so at the same time.
func (r *run) fetches(kind schedule.Collective) bool {
	return r.Mapped && r.LocalByCore && (kind == schedule.CollectiveBcast || kind == schedule.CollectiveScatter)
}

// hands says whether a rank copies a result to the caller. The ranks of a large call combine
// it where the caller wants it, unless others put there.
func (r *run) hands(call schedule.Call, rank, element int, large bool) (bool, error) {
	if !r.Handed || !has(call, rank) {
		return false, nil
	}
	if !large {
		return true, nil
	}
	if r.direct(call, element) {
		return false, nil
	}
	return call.Targeted(rank)
}

// peersOf are those with whom a rank does something.
func peersOf(plan schedule.Plan, action schedule.Action) (peers []int32) {
	seen := make(map[int]bool)
	for _, s := range plan.Steps {
		if s.Action == action && !seen[s.Peer] {
			seen[s.Peer] = true
			peers = append(peers, int32(s.Peer))
		}
	}
	return peers
}

// outputOf is the longest Output of a rank, in units.
func outputOf(call schedule.Call) int {
	switch call.Collective {
	case schedule.CollectiveGather, schedule.CollectiveAllgather, schedule.CollectiveAlltoall:
		return call.Size * call.Length
	}
	return call.Length
}

// has says whether a rank gets a result.
func has(call schedule.Call, rank int) bool {
	switch call.Collective {
	case schedule.CollectiveBarrier:
		return false
	case schedule.CollectiveReduce, schedule.CollectiveGather:
		return rank == call.Root
	case schedule.CollectiveBcast:
		return rank != call.Root
	}
	return true
}
