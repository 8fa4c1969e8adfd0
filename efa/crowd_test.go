package efa

import (
	"testing"
	"time"
)

const crowded, calm = 2 * crowdedYield, crowdedYield / 2

// untilMove is how many crowded yields it takes, or 0 if not even most of them.
func untilMove(c *crowd) int {
	for n := 1; n <= mostCrowded; n++ {
		if c.yielded(crowded) {
			return n
		}
	}
	return 0
}

func TestCrowdIsLeft(t *testing.T) {
	c := crowd{slow: crowdedYield}
	for want := fewCrowded; want <= mostCrowded; want *= 2 {
		if n := untilMove(&c); n != want {
			t.Fatalf("it moves after %d crowded yields, and not %d", n, want)
		}
	}
	if n := untilMove(&c); n != mostCrowded {
		t.Errorf("it moves after %d crowded yields, and not %d, when it has done so for long", n, mostCrowded)
	}
	for range calmYields - 1 {
		if c.yielded(calm) {
			t.Fatal("it moves although nobody wants its core")
		}
	}
	if n := untilMove(&c); n != mostCrowded {
		t.Errorf("it moves after %d crowded yields, and not %d, when it was calm for a moment", n, mostCrowded)
	}
	for range calmYields {
		c.yielded(calm)
	}
	if n := untilMove(&c); n != fewCrowded {
		t.Errorf("it moves after %d crowded yields, and not %d, when the last move was good", n, fewCrowded)
	}
}

// Most yields find nobody, and others now and then have no need to be left.
func TestCrowdNowAndThen(t *testing.T) {
	c := crowd{slow: crowdedYield}
	for n := range 100 * fewCrowded {
		took := crowded
		if n%fewCrowded == 0 {
			took = calm
		}
		if c.yielded(took) {
			t.Fatalf("it moves at yield %d, and had nobody on its core at every %dth", n, fewCrowded)
		}
		if c.here != (took == crowded) {
			t.Fatalf("after a yield of %v, others are here: %v", took, c.here)
		}
	}
}

// Before a yield was measured that had the core for itself, the first that seems crowded is a reason to.
func TestCrowdMeasures(t *testing.T) {
	var c crowd
	if c.yielded(calm) || c.here {
		t.Errorf("a yield of %v is taken for crowded", calm)
	}
	if !c.yielded(crowded) {
		t.Errorf("nothing is measured after the first yield of %v", crowded)
	}
	// All that were to be measured had others run.
	if n := untilMove(&c); n != 2*fewCrowded {
		t.Errorf("it moves again after %d crowded yields, and not %d", n, 2*fewCrowded)
	}
}

// What a yield takes differs between machines, by more than whether others run in it.
func TestCrowdOfSlowYields(t *testing.T) {
	for _, of := range []struct{ alone, calm, crowded time.Duration }{
		{300 * time.Nanosecond, crowdedYield, crowdedYield + 1},
		{crowdedYield, loneYields * crowdedYield, loneYields*crowdedYield + 1},
		{time.Millisecond, slowestYield, slowestYield + 1}, // it was interrupted
	} {
		c := crowd{limit: mostCrowded, here: true}
		c.measured(of.alone)
		if c.here || c.yielded(of.calm) || c.here {
			t.Errorf("where a yield takes %v alone, one of %v is taken for crowded", of.alone, of.calm)
		}
		if c.yielded(of.crowded); !c.here {
			t.Errorf("where a yield takes %v alone, one of %v is not taken for crowded", of.alone, of.crowded)
		}
		if c.limit != fewCrowded {
			t.Errorf("it moves after %d crowded yields, and not %d, when it has found out", c.limit, fewCrowded)
		}
	}
}
