package cost

import (
	"math/bits"
	"time"

	"github.com/weft-go/weft/collective/schedule"
)

// Bound says how long a collective takes at least, whatever the algorithm, where a rank
// puts to one other at a time, and one to it: by the number of puts that must follow each
// other, by the bytes that must go through the link of a rank, and by those that a rank must
// combine if all do as much as each other. These are the bounds of Chan, Heimlich, Purkayastha
// and van de Geijn, "Collective communication: theory, practice, and experience" (2007).
//
// Each of them holds alone. That they add up is not proved, and algorithms that are good
// for one are not for another.
type Bound struct{ Latency, Bandwidth, Compute time.Duration }

// Max is the largest of the three: no call takes less.
func (b Bound) Max() time.Duration { return max(b.Latency, b.Bandwidth, b.Compute) }

// Sum is all three, one after the other: what a call is measured by that overlaps nothing.
func (b Bound) Sum() time.Duration { return b.Latency + b.Bandwidth + b.Compute }

// LowerBound is the bound of a call, by any algorithm, whose units have element bytes. alpha
// is how long a put without data takes; a link carries bandwidth bytes per second, and a
// rank combines reduceRate bytes of a result. A rate of 0 takes no time.
//
// The errors are those of [Cost].
func LowerBound(call schedule.Call, element int, alpha time.Duration, bandwidth, reduceRate float64) (Bound, error) {
	network, err := Network{Latency: alpha, Bandwidth: bandwidth, ReduceRate: reduceRate}.withDefaults()
	if err != nil {
		return Bound{}, err
	}
	if err := checkElement(element); err != nil {
		return Bound{}, err
	}
	call.Algorithm = schedule.Default
	if _, err := call.Plan(0); err != nil {
		return Bound{}, err
	}
	ranks, block := float64(call.Size), float64(call.Length)*float64(element)
	others := ranks - 1
	through, combined := 0.0, 0.0 // bytes, of the rank that has the most and of each
	switch call.Collective {
	case schedule.CollectiveBcast:
		through = block
	case schedule.CollectiveReduce:
		through, combined = block, block*others/ranks
	case schedule.CollectiveAllreduce:
		through, combined = 2*block*others/ranks, block*others/ranks
	case schedule.CollectiveGather, schedule.CollectiveScatter, schedule.CollectiveAllgather, schedule.CollectiveAlltoall:
		through = block * others
	case schedule.CollectiveReduceScatter:
		through, combined = block*others, block*others
	}
	if call.Size == 1 {
		return Bound{}, nil
	}
	b := Bound{
		Bandwidth: duration(seconds(through / network.Bandwidth)),
		Compute:   duration(seconds(combined / network.ReduceRate)),
	}
	if call.Length > 0 || call.Collective == schedule.CollectiveBarrier {
		b.Latency = time.Duration(bits.Len(uint(call.Size-1))) * alpha
	}
	return b, nil
}
