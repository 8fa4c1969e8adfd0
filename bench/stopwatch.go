package main

import (
	"errors"
	"slices"
	"time"
)

// A run is timed as a whole and in equal parts. The median of the parts is what
// the work takes while the kernel gives the cores to nobody else. A flood comes
// in bursts, which a part must be many times longer than.
const (
	mostParts    = 512
	pingPongPart = 1 // messages at least
)

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
}

// figures are what a side reports, and measured reads.
func (t times) figures() []int64 {
	return []int64{t.elapsed.Nanoseconds(), int64(t.operations), t.part.Nanoseconds(), int64(t.partOperations)}
}

// newStopwatch plans parts of at least so many messages, or a single one.
func newStopwatch(o order, least int) *stopwatch {
	parts := min(max(o.count/least, 1), mostParts)
	return &stopwatch{
		next: o.warmup, count: o.count, parts: parts, step: o.count / parts,
		start: time.Now(), marks: make([]time.Duration, 0, parts+1),
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
	return times{
		elapsed: end - w.marks[0], operations: w.count * perMessage,
		part: lengths[w.parts/2], partOperations: w.step * perMessage,
	}, nil
}
