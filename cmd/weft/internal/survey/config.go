package survey

import (
	"fmt"
	"time"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/internal/bench/job"
)

// Config says what to look at.
type Config struct {
	Collectives []schedule.Collective
	Ranks       []int
	// Sizes are in bytes: all of a Bcast, Reduce or Allreduce, and otherwise the block of a
	// rank. A Barrier has none.
	Sizes []int
	// Progress hears how many steps there are, and of each that begins. It may be nil.
	Progress func(steps, done int, what string)

	// The others are for what is measured.

	Provider string
	Rounds   int
	// Time is how long each case is measured in each round.
	Time time.Duration
	// Command has the arguments with which this program is a rank, see job.Ranks.
	Command []string
	// Algorithms has each algorithm measured, and Simulate has them reckoned with, too.
	Algorithms, Simulate bool
	// Arena has weft's ranks keep their data in an arena.
	Arena bool
	// Memory is what all ranks together may use, in bytes; 0 is no limit.
	Memory int
}

const shm = "shm"

// element is the size of what ranks give each other: float32, as in package job.
const element = 4

func (c Config) progress(steps, done int, what string) {
	if c.Progress != nil {
		c.Progress(steps, done, what)
	}
}

// sizesOf are those of a collective.
func (c Config) sizesOf(kind schedule.Collective) []int {
	if kind == schedule.CollectiveBarrier {
		return []int{0}
	}
	return c.Sizes
}

// callOf is a call as weft makes it by an algorithm, on shm or not; by Default where nobody says how.
func callOf(kind schedule.Collective, algorithm schedule.Algorithm, ranks, bytes int, shm bool) (schedule.Call, error) {
	c := collective.Config{Algorithms: map[schedule.Collective]schedule.Algorithm{kind: algorithm}}
	o, err := c.Options(kind, ranks, bytes, element, true, shm)
	// The root's data stay where they are.
	o.InPlace = kind == schedule.CollectiveBcast
	return schedule.Call{Collective: kind, Size: ranks, Length: bytes / element, Options: o}, err
}

// newResults makes a result for all that is to be looked at. ignored are those for which
// there is no memory.
func (c Config) newResults() (results []*Result, ignored []job.Case, err error) {
	for _, kind := range c.Collectives {
		for _, ranks := range c.Ranks {
			for _, bytes := range c.sizesOf(kind) {
				call, err := callOf(kind, schedule.Default, ranks, bytes, c.Provider == shm)
				if err == nil {
					err = call.Check()
				}
				if err != nil {
					return nil, nil, fmt.Errorf("%v of %s on %d ranks: %w", kind, sizeName(bytes), ranks, err)
				}
				one := job.Case{Work: kind.String(), Bytes: bytes}
				if c.Memory > 0 && one.Memory(ranks) > c.Memory {
					ignored = append(ignored, one)
					continue
				}
				r := &Result{Collective: kind.String(), Ranks: ranks, Bytes: bytes, Algorithm: call.Algorithm.String()}
				if c.Algorithms {
					for _, a := range schedule.Algorithms(kind) {
						r.Algorithms = append(r.Algorithms, Algorithm{Name: a.String()})
					}
				}
				results = append(results, r)
			}
		}
	}
	return results, ignored, nil
}
