package collective

import (
	"slices"

	"github.com/weft-go/weft/collective/schedule"
)

// Where Output is not the caller's, the result is copied at the end, but for two kinds of parts. What a
// rank keeps of its own (schedule.Plan.Kept) never comes to Output. And what others put there in a
// large call (schedule.Plan.Given) goes to the caller piece by piece, while the next one is on its way, and
// this one in the caches.

// handsEarly says whether parts of the result go to the caller before the end: not where something is still
// to be read from there.
func (c *call) handsEarly() bool {
	if c.own || c.shape.uneven != nil || overlap(c.input, c.output) {
		return false
	}
	early := c.handedEarly()
	if len(early) == 0 {
		return false
	}
	last := early[len(early)-1]
	return (last.Offset+last.Length)*c.shape.element <= len(c.output)
}

// handedEarly are these parts, by Offset.
func (c *call) handedEarly() []schedule.Span {
	if c.large {
		return c.planned.early
	}
	return c.planned.kept
}

// outputOf is a part of what the caller gets.
func (c *call) outputOf(s schedule.Span) []byte {
	e := c.shape.element
	return c.output[s.Offset*e : (s.Offset+s.Length)*e]
}

// kept is where what a rank keeps of its Input belongs, if that is not Output.
func (c *call) kept(s *schedule.Step) []byte {
	if c.early && s.Src.Space == schedule.Input && isPart(c.planned.kept, s.Dst) {
		return c.outputOf(s.Dst)
	}
	return nil
}

// handGiven hands what has come in the steps so far. Others may wait for what follows a piece, so it comes
// after that.
func (c *call) handGiven() {
	if !c.early || !c.large {
		return
	}
	for ; c.handed < c.step; c.handed++ {
		s := &c.planned.plan.Steps[c.handed]
		if s.Action == schedule.Await && isPart(c.planned.early, s.Dst) {
			c.copy(c.outputOf(s.Dst), c.at(s.Dst))
		}
	}
}

// isPart says whether a span is one of those, which are of Output, and by Offset.
func isPart(parts []schedule.Span, s schedule.Span) bool {
	if s.Space != schedule.Output || s.Length == 0 {
		return false
	}
	i, found := slices.BinarySearchFunc(parts, s.Offset, func(part schedule.Span, offset int) int { return part.Offset - offset })
	return found && parts[i] == s
}

// hand gives the caller what came to Output, if that is not the caller's.
func (c *call) hand() {
	if c.own {
		return
	}
	c.handGiven()
	result, first, e := c.spaces[schedule.Output], 0, c.shape.element
	switch {
	case c.shape.uneven != nil && c.shape.uneven.output != nil && len(c.output) > 0:
		// What is between the blocks is the caller's.
		for _, s := range spansOf(*c.shape.uneven.output) {
			c.copy(c.output[s.first*e:s.end*e], result[s.first*e:s.end*e])
		}
		return
	case c.early:
		for _, part := range c.handedEarly() {
			c.copy(c.output[first:part.Offset*e], result[first:])
			first = (part.Offset + part.Length) * e
		}
	}
	c.copy(c.output[first:], result[first:])
}
