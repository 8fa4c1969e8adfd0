package cost

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-go/weft/collective/schedule"
)

const (
	// mostCalls is how many calls there may be in a row, and mostNumbers how many numbers each
	// has for what goes from one rank to another.
	mostCalls   = 15
	mostNumbers = 1 << 16
)

// Row is when each rank, by its number, has ended each of some calls that all ranks make one
// after the other. Beside the plans it takes in what package collective does for calls:
// Network.Call, Slot and Handed. All ranks are looked at, so many of them take long.
//
// The errors are those of [Cost].
func Row(calls []schedule.Call, element int, network Network) ([][]time.Duration, error) {
	network, err := network.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkElement(element); err != nil {
		return nil, err
	}
	if len(calls) == 0 || len(calls) > mostCalls {
		return nil, &schedule.ArgumentError{Name: "number of calls", Value: len(calls), Want: fmt.Sprintf("1 to %d", mostCalls)}
	}
	size := calls[0].Size
	if _, err := calls[0].Plan(0); err != nil {
		return nil, err
	}
	r := newRun(size, 0, size, network)
	for nth, call := range calls {
		if call.Size != size {
			return nil, &schedule.ArgumentError{Name: "size", Value: call.Size, Want: fmt.Sprintf("%d, as in the first call", size)}
		}
		if err := r.add(call, element, nth); err != nil {
			return nil, err
		}
	}
	r.finish()
	ends := make([][]time.Duration, len(calls))
	for nth := range calls {
		ends[nth] = make([]time.Duration, size)
		for i := range r.ranks {
			ends[nth][i] = duration(r.ranks[i].ends[nth])
		}
	}
	return ends, nil
}

// What ranks tell each other beside the plans, by number: that they are ready for a call, and
// that they are done with one and can be put to again.
const (
	readyNumber = mostNumbers - 1
	doneNumber  = mostNumbers - 2
	mostPuts    = mostNumbers - 2
	// ahead is how many calls later that counts, and how often it is said: what else goes
	// from rank to rank says it, too.
	ahead = 2
)

// add appends a call to what the ranks do.
func (r *run) add(call schedule.Call, element, nth int) error {
	plans := make([]schedule.Plan, call.Size)
	scratch := 0
	for rank := range plans {
		var err error
		if plans[rank], err = call.Plan(rank); err != nil {
			return err
		}
		scratch = max(scratch, plans[rank].Scratch)
	}
	output := outputOf(call)
	large := r.Slot > 0 && (output+scratch)*element > r.Slot
	told := make([][]int32, call.Size)
	r.told = append(r.told, told)
	first := int32(nth * mostNumbers)
	for rank := range plans {
		me := &r.ranks[rank]
		notice := func(action schedule.Action, peer int32, number int) {
			me.steps = append(me.steps, step{action: action, peer: peer, number: int32(number), notice: true})
		}
		me.steps = append(me.steps, step{action: entered})
		if nth >= ahead {
			for _, peer := range r.told[nth-ahead][rank] {
				notice(schedule.Await, peer, (nth-ahead)*mostNumbers+doneNumber)
			}
		}
		sources, targets := peersOf(plans[rank], schedule.Await), peersOf(plans[rank], schedule.Put)
		if large {
			for _, peer := range sources {
				notice(schedule.Signal, peer, nth*mostNumbers+readyNumber)
			}
		}
		for i := range plans[rank].Steps {
			s := &plans[rank].Steps[i]
			if s.Number >= mostPuts {
				return &schedule.ArgumentError{Name: "number of puts to a rank", Value: s.Number + 1, Want: fmt.Sprintf("up to %d in a row of calls", mostPuts)}
			}
			if large && s.Action == schedule.Put && s.Number == 0 {
				notice(schedule.Await, int32(s.Peer), nth*mostNumbers+readyNumber)
			}
			me.steps = inBytes(me.steps, plans[rank].Steps[i:i+1], element)
			last := &me.steps[len(me.steps)-1]
			last.number += first
			last.notice = call.Collective == schedule.CollectiveBarrier
		}
		if nth%ahead == ahead-1 && !large && call.Collective != schedule.CollectiveBarrier {
			for _, peer := range sources {
				if !slices.Contains(targets, peer) {
					notice(schedule.Signal, peer, nth*mostNumbers+doneNumber)
					told[peer] = append(told[peer], int32(rank))
				}
			}
		}
		if r.Handed && has(call, rank) {
			me.steps = append(me.steps, step{action: schedule.Copy, bytes: float64(output * element)})
		}
		me.steps = append(me.steps, step{action: ended})
	}
	return nil
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
