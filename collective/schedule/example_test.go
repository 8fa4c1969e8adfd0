package schedule_test

import (
	"fmt"

	"github.com/weft-go/weft/collective/schedule"
)

// What the middle one of three ranks does to hand on a broadcast along a chain, in two
// pieces.
func ExampleBcast() {
	plan, err := schedule.Bcast(1, 3, 0, 100, schedule.Options{Fanout: 1, Chunk: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range plan.Steps {
		fmt.Println(step.Action, "rank", step.Peer, "number", step.Number, "units", step.Src.Length)
	}
	// Output:
	// await rank 0 number 0 units 0
	// put rank 2 number 0 units 50
	// await rank 0 number 1 units 0
	// put rank 2 number 1 units 50
}

func ExampleCall_Totals() {
	for _, algorithm := range schedule.Algorithms(schedule.CollectiveAllreduce) {
		call := schedule.Call{Collective: schedule.CollectiveAllreduce, Size: 16, Length: 1600}
		call.Algorithm, call.Commutative = algorithm, true
		totals, err := call.Totals()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d rounds, at most %d units\n", algorithm, totals.Rounds, totals.Most)
	}
	// Output:
	// recursive-doubling: 4 rounds, at most 6400 units
	// reduce-bcast: 8 rounds, at most 4800 units
	// rabenseifner: 8 rounds, at most 3000 units
	// ring: 30 rounds, at most 3000 units
	// direct: 1 rounds, at most 24000 units
	// pairwise: 2 rounds, at most 3000 units
}
