package schedule

import "slices"

// Space is a memory of a rank during a call.
type Space uint8

const (
	// Input is what the caller gives. It is only read, and only by its own rank.
	Input Space = iota
	// Output is where the result goes. Peers may put into it.
	Output
	// Scratch is memory of the call's own, Plan.Scratch units long. Peers may put into it.
	// What was in it before does not matter.
	Scratch
)

func (s Space) String() string {
	switch s {
	case Input:
		return "input"
	case Output:
		return "output"
	case Scratch:
		return "scratch"
	}
	return "unknown space"
}

// Span is a part of a space, in units: elements of the call's type.
type Span struct {
	Space          Space
	Offset, Length int
}

// part is the part of the span that begins at offset and has length units.
func (s Span) part(offset, length int) Span {
	return Span{Space: s.Space, Offset: s.Offset + offset, Length: length}
}

func (s Span) overlaps(t Span) bool {
	return s.Space == t.Space && s.Offset < t.Offset+t.Length && t.Offset < s.Offset+s.Length
}

// Action is what a step does.
type Action uint8

const (
	// Put begins to write Src, of this rank, to Dst, of the same length in a space of
	// Peer, and tells Peer when it is there. It does not wait for that.
	Put Action = iota + 1
	// Await waits until Peer's put or signal of that Number is there.
	Await
	// Reduce makes Dst = Src op Other, element by element. Src is the operand of the
	// lower ranks, where the order counts. The spans have the same length; Dst may be
	// the same as Src or as Other, and otherwise has nothing in common with them.
	Reduce
	// Copy makes Dst = Src. The two have the same length and nothing in common.
	Copy
	// Settle waits until what all earlier Puts of this rank read may be changed.
	Settle
	// Signal tells Peer something, as a Put does, but without data: it has no spans.
	Signal
)

func (a Action) String() string {
	switch a {
	case Put:
		return "put"
	case Await:
		return "await"
	case Reduce:
		return "reduce"
	case Copy:
		return "copy"
	case Settle:
		return "settle"
	case Signal:
		return "signal"
	}
	return "unknown action"
}

// Step is one thing that a rank does.
type Step struct {
	Action Action
	// Peer is the other rank of a Put, Signal or Await.
	Peer int
	// Number counts the Puts and Signals from one rank to another within the call, from
	// 0: in a Put or Signal those of this rank to Peer, in an Await those of Peer to this
	// rank. The two are counted together. They are begun in the order of their numbers,
	// but awaited in any.
	Number int
	// Src and Dst are for Put, Reduce and Copy, Other is for Reduce. In an Await, Dst is that of
	// the Put, or nothing for a Signal.
	Src, Other, Dst Span
}

// Plan is what one rank does in one call, in that order. Only Await, Settle and the end
// of the call wait: the call has ended when all steps are done, and what its Puts read
// may be changed.
//
// A Put may begin only when its peer has entered the call, since before that the peer's
// Output and Scratch are not for this call. Whoever carries the plan out sees to that.
type Plan struct {
	Steps []Step
	// Scratch is how long the space of that name is at this rank, in units.
	Scratch int
}

// Kept are the parts of Output that the rank copies there from its Input, and does not look at
// again: whoever hands Output to a caller may have them copied there at once. By Offset.
func (p Plan) Kept() (kept []Span) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Action == Copy && s.Src.Space == Input && s.Dst.Space == Output && s.Dst.Length > 0 && !p.uses(s.Dst, i) {
			kept = append(kept, s.Dst)
		}
	}
	slices.SortFunc(kept, func(a, b Span) int { return a.Offset - b.Offset })
	return kept
}

// Given are the parts of Output that are put there once, by a peer, and do not change any more: whoever
// hands Output to a caller may have each copied there as soon as its Await is over. By Offset.
func (p Plan) Given() []Span {
	type write struct {
		Span
		put bool
	}
	var writes []write
	for i := range p.Steps {
		s := &p.Steps[i]
		switch s.Action {
		case Await, Reduce, Copy:
			if s.Dst.Space == Output && s.Dst.Length > 0 {
				writes = append(writes, write{s.Dst, s.Action == Await})
			}
		}
	}
	slices.SortFunc(writes, func(a, b write) int { return a.Offset - b.Offset })
	var given []Span
	before := 0 // the end of all that begins before
	for i, w := range writes {
		end := w.Offset + w.Length
		if w.put && w.Offset >= before && (i == len(writes)-1 || end <= writes[i+1].Offset) {
			given = append(given, w.Span)
		}
		before = max(before, end)
	}
	return given
}

// uses says whether a step other than that of an index reads a span of the rank's own, or writes to it.
func (p Plan) uses(span Span, but int) bool {
	meets := func(other Span) bool {
		return other.Space == span.Space && other.Offset < span.Offset+span.Length && span.Offset < other.Offset+other.Length
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		reads := s.Action == Put || s.Action == Reduce || s.Action == Copy
		if i != but && (reads && meets(s.Src) || s.Action == Reduce && meets(s.Other) || (s.Action == Reduce || s.Action == Copy) && meets(s.Dst)) {
			return true
		}
	}
	return false
}
