package collective

import (
	"slices"

	"github.com/weft-go/weft/collective/schedule"
)

// shape is what all ranks of a call know of it, and what a plan follows from.
type shape struct {
	schedule.Call
	element int // bytes of a unit
	// uneven is for a call with counts of its own for each rank.
	uneven *uneven
}

// uneven is a call of which a rank knows its own part only.
type uneven struct {
	plan schedule.Plan // of this rank
	// output has the parts of Output that the call writes; the others are the caller's.
	output *schedule.Blocks
	// alike are the blocks that all ranks have alike, if there are any.
	alike schedule.Blocks
	// pairs is for a call of which only the two ranks of a pair know alike what one puts
	// to the other; nil for others.
	pairs *pairs
}

// pairs has how many elements go to each rank, and where those of each come.
type pairs struct {
	sent     []int
	received []span
}

// planned is what this rank does in calls of a shape.
type planned struct {
	plan schedule.Plan
	// output and scratch are the most that any rank has, in bytes, or those of this one in
	// an uneven call. The latter begins behind the former.
	output, scratch int
	sources         []int // ranks that put or signal to this one
	awaited         int   // how many puts and signals
	fingerprint     uint64
	collective      schedule.Collective
	// targeted: others put to this rank's Output.
	targeted bool
	// kept and early are parts of Output that need not go to the caller at the end: see hand.go.
	kept, early []schedule.Span
	placed      *planned // of inPlace
}

// inPlace is what this rank does if its contribution stands in Output. That is a matter of
// each rank alone.
func (p *planned) inPlace(s *shape, rank int) (*planned, error) {
	if p.placed == nil {
		call := s.Call
		call.InPlace = true
		plan, err := call.Plan(rank)
		if err != nil {
			return nil, err
		}
		p.placed = newPlanned(s.Collective, plan, p.output, plan.Scratch*s.element, p.fingerprint)
		p.placed.targeted = p.targeted
	}
	return p.placed, nil
}

// fingerprint is a number that is the same for the same shape in all processes. What is
// combined, and by what, is added for each call (call.fingerprintOf).
func (s *shape) fingerprint() uint64 {
	h := newHash()
	for _, n := range [...]int{int(s.Collective), s.Root, s.Length, s.Fanout, s.Chunk, int(s.Algorithm), s.element} {
		h.add(n)
	}
	if s.Commutative {
		h.add(1)
	}
	if s.uneven != nil {
		for _, part := range spansOf(s.uneven.alike) {
			h.add(part.end - part.first)
			if part.end > part.first {
				h.add(part.first)
			}
		}
	}
	return uint64(h)
}

// plans are those of the last shapes. A shape has its place in one of the rows, by what it
// has: calls in turn whose shapes fall into the same row must not drive each other out, for a
// plan takes longer than a short call.
type plans struct {
	known [planRows]planRow
	last  *plannedShape // since many calls are of the same shape as the one before
}

type planRow struct {
	shapes [planColumns]plannedShape
	next   int // the place of the next shape that is new
}

const (
	planRows    = 1 << planRowBits
	planRowBits = 4
	planColumns = 4
)

// find is the row of a shape, and its place in it, which is nil if it has none.
func (ps *plans) find(s *shape) (*planRow, *plannedShape) {
	// The fingerprint takes too long for each call.
	mixed := (uint64(s.Length)<<16 ^ uint64(s.Algorithm)<<12 ^ uint64(s.Root)<<8 ^ uint64(s.Collective)<<4 ^ uint64(s.element)) * 0x9e3779b97f4a7c15
	row := &ps.known[mixed>>(64-planRowBits)]
	for i := range row.shapes {
		if row.shapes[i].is(s) {
			return row, &row.shapes[i]
		}
	}
	return row, nil
}

type plannedShape struct {
	call    schedule.Call
	element int
	planned *planned
}

func (ps *plannedShape) is(s *shape) bool {
	return ps.planned != nil && ps.call == s.Call && ps.element == s.element
}

// of returns what this rank does in calls of a shape. output is the length of its own
// Output, in bytes.
func (ps *plans) of(s *shape, rank, output int) (*planned, error) {
	if s.uneven == nil && ps.last != nil && ps.last.is(s) {
		return ps.last.planned, nil
	}
	if s.uneven != nil {
		p := newPlanned(s.Collective, s.uneven.plan, output, s.uneven.plan.Scratch*s.element, s.fingerprint())
		// No rank puts to another what is combined last.
		p.targeted = s.Collective != schedule.CollectiveReduceScatter
		return p, nil
	}
	row, place := ps.find(s)
	if place != nil {
		ps.last = place
		return place.planned, nil
	}
	mine, err := s.Plan(rank)
	if err != nil {
		return nil, err
	}
	scratch, err := s.MostScratch()
	if err != nil {
		return nil, err
	}
	targeted, err := s.Targeted(rank)
	if err != nil {
		return nil, err
	}
	place = &row.shapes[row.next]
	row.next = (row.next + 1) % planColumns
	place.call, place.element, ps.last = s.Call, s.element, place
	place.planned = newPlanned(s.Collective, mine, s.longestOutput()*s.element, scratch*s.element, s.fingerprint())
	place.planned.targeted = targeted
	place.planned.kept = mine.Kept()
	place.planned.early = append(mine.Given(), place.planned.kept...)
	slices.SortFunc(place.planned.early, func(a, b schedule.Span) int { return a.Offset - b.Offset })
	return place.planned, nil
}

func newPlanned(kind schedule.Collective, plan schedule.Plan, output, scratch int, fingerprint uint64) *planned {
	p := &planned{plan: plan, output: output, scratch: scratch, fingerprint: fingerprint, collective: kind}
	type put struct{ peer, number int }
	seen := make(map[int]bool)
	awaited := make(map[put]bool)
	for _, step := range plan.Steps {
		if step.Action != schedule.Await {
			continue
		}
		awaited[put{step.Peer, step.Number}] = true
		if !seen[step.Peer] {
			seen[step.Peer] = true
			p.sources = append(p.sources, step.Peer)
		}
	}
	p.awaited = len(awaited)
	return p
}

// longestOutput is that of any rank, in units.
func (s *shape) longestOutput() int {
	switch s.Collective {
	case schedule.CollectiveGather, schedule.CollectiveAllgather, schedule.CollectiveAlltoall:
		return s.Size * s.Length
	}
	return s.Length
}
