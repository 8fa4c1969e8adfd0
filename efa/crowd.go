package efa

import "time"

const (
	// A yield that takes longer than crowdedYield has had another process run.
	crowdedYield = 1500 * time.Nanosecond
	// After so many of them in a row a leader moves to another core, and after twice as
	// many the next time, up to mostCrowded: where none is free, it is of no use. When
	// calmYields in a row have found nobody, it was.
	fewCrowded  = 32
	mostCrowded = 4096
	calmYields  = 256
)

// crowd is what a leader that spins knows of the other processes that want its core. It
// belongs to the role.
//
// There may be another core that nobody wants. Linux leaves two processes that yield to each
// other on one for tens of milliseconds, because neither ever waits; two ranks take four
// times as long for a barrier there.
type crowd struct {
	here  bool // they do
	row   int  // how many yields in a row have had them run
	calm  int  // how many have not
	limit int  // the row after which to move
}

// yielded notes a yield that took so long, and says whether to move.
func (c *crowd) yielded(took time.Duration) (move bool) {
	c.limit = max(c.limit, fewCrowded)
	if c.here = took > crowdedYield; !c.here {
		c.row = 0
		if c.calm++; c.calm >= calmYields {
			c.limit = fewCrowded
		}
		return false
	}
	c.calm = 0
	if c.row++; c.row < c.limit {
		return false
	}
	c.row, c.limit = 0, min(2*c.limit, mostCrowded)
	return true
}
