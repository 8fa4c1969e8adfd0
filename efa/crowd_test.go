package efa

import "testing"

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
	var c crowd
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
	var c crowd
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
