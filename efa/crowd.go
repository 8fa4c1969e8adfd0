package efa

import "time"

const (
	// A yield that takes longer than crowdedYield has had another process run; or, on a machine where
	// that is what it takes alone, one that takes loneYields times as long as alone, but no longer than
	// slowestYield, since what was alone may have been interrupted.
	crowdedYield = 1500 * time.Nanosecond
	loneYields   = 2
	slowestYield = 5 * time.Microsecond
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
	// slow is what no yield takes that has the core for itself; 0 until a lone one was measured.
	slow time.Duration
}

// measured is told what a yield takes that nobody else has run in.
func (c *crowd) measured(alone time.Duration) {
	*c = crowd{slow: max(min(loneYields*alone, slowestYield), crowdedYield)}
}

// yielded notes a yield that took so long, and says whether to leave the core: the first time at once, which finds
// out what a yield takes alone.
func (c *crowd) yielded(took time.Duration) (move bool) {
	c.limit = max(c.limit, fewCrowded)
	if c.here = took > max(c.slow, crowdedYield); !c.here {
		c.row = 0
		if c.calm++; c.calm >= calmYields {
			c.limit = fewCrowded
		}
		return false
	}
	c.calm = 0
	if c.row++; c.row < c.limit && (c.slow > 0 || c.limit > fewCrowded) {
		return false
	}
	c.row, c.limit = 0, min(2*c.limit, mostCrowded)
	return true
}

// leave has the leader go to another core, unless it finds out that it has this one for itself, and says how
// long that took.
func (c *crowd) leave() (spent time.Duration) {
	if c.slow == 0 {
		var alone time.Duration
		if spent, alone = lone(); alone > 0 {
			c.measured(alone)
			return spent
		}
	}
	return spent + move()
}
