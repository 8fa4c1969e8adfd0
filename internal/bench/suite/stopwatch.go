package suite

import (
	"errors"
	"math"
	"slices"
	"time"
)

// A run is timed as a whole and in equal parts. The median of the parts is what
// the work takes while the kernel gives the cores to nobody else. A flood comes
// in bursts, which a part must be many times longer than.
const (
	mostParts    = 512
	pingPongPart = 1 // messages at least
	// mostEach is how many parts there are where each message is one, for the distribution.
	mostEach = 1 << 20
)

// percentiles of a distribution are what is told of it, as in c/stopwatch.c.
var percentiles = [...]float64{1, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.99, 100}

func (o order) floodPart() int { return max(65536/o.size, 16*o.window) }

// stopwatch times a run as a whole and in parts, as in c/stopwatch.c.
type stopwatch struct {
	next               int // the number of the message to call mark at
	count, parts, step int
	start              time.Time
	marks              []time.Duration
}

// times are what is reported; the zero value by the side that does not measure.
type times struct {
	elapsed        time.Duration // of all that counts
	operations     int
	part           time.Duration // of the median part
	partOperations int
	percentiles    [len(percentiles)]time.Duration // of the parts
}

// figures are what a side reports, and measured reads.
func (o order) figures(t times) []int64 {
	all := []int64{t.elapsed.Nanoseconds(), int64(t.operations), t.part.Nanoseconds(), int64(t.partOperations)}
	if o.work == latencyWork {
		for _, p := range t.percentiles {
			all = append(all, p.Nanoseconds())
		}
	}
	return all
}

// newStopwatch plans parts of at least so many messages, or a single one.
func newStopwatch(o order, least int) *stopwatch {
	most := mostParts
	if o.work == latencyWork {
		most = mostEach
	}
	parts := min(max(o.count/least, 1), most)
	marks := make([]time.Duration, parts+1)
	for i := range marks {
		marks[i] = 1 // so that the memory is there before the clock runs
	}
	return &stopwatch{
		next: o.warmup, count: o.count, parts: parts, step: o.count / parts,
		start: time.Now(), marks: marks[:0],
	}
}

// mark is to be called when next messages are done.
func (w *stopwatch) mark() {
	w.marks = append(w.marks, time.Since(w.start))
	w.next += w.step
	if len(w.marks) > w.parts {
		w.next = -1
	}
}

// stop says how long it took, for operations of which each message makes so
// many.
func (w *stopwatch) stop(perMessage int) (times, error) {
	end := time.Since(w.start)
	if len(w.marks) <= w.parts {
		return times{}, errors.New("the stopwatch was stopped too early")
	}
	lengths := make([]time.Duration, w.parts)
	for i := range lengths {
		lengths[i] = w.marks[i+1] - w.marks[i]
	}
	slices.Sort(lengths)
	took := times{
		elapsed: end - w.marks[0], operations: w.count * perMessage,
		part: lengths[w.parts/2], partOperations: w.step * perMessage,
	}
	for i, p := range percentiles {
		took.percentiles[i] = lengths[max(int(math.Ceil(p/100*float64(w.parts)))-1, 0)]
	}
	return took, nil
}
