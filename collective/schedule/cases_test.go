package schedule_test

import (
	"iter"
	"slices"

	"github.com/weft-go/weft/collective/schedule"
)

func rooted(c schedule.Collective) bool {
	return slices.Contains([]schedule.Collective{
		schedule.CollectiveBcast, schedule.CollectiveReduce, schedule.CollectiveGather, schedule.CollectiveScatter,
	}, c)
}

// wholes says whether the length of a collective is that of all data, and not of a block.
func wholes(c schedule.Collective) bool {
	return slices.Contains([]schedule.Collective{
		schedule.CollectiveBcast, schedule.CollectiveReduce, schedule.CollectiveAllreduce,
	}, c)
}

func lengths(c schedule.Collective, size int) []int {
	switch {
	case c == schedule.CollectiveBarrier:
		return []int{0}
	case wholes(c):
		return slices.Compact(slices.Sorted(slices.Values([]int{0, 1, size - 1, size, size + 1, 97})))
	}
	return []int{0, 1, 3}
}

func roots(c schedule.Collective, size int) []int {
	if !rooted(c) {
		return []int{0}
	}
	if size > 9 {
		return []int{0, size * 5 / 8, size - 1}
	}
	var all []int
	for root := range size {
		all = append(all, root)
	}
	return all
}

// changes says whether an algorithm does something else where it may change the order.
func changes(c schedule.Collective, a schedule.Algorithm) bool {
	return !schedule.KeepsOrder(c, a) || a == schedule.ReduceBcast || a == schedule.Rabenseifner
}

// calls yields calls of a collective: every algorithm, length and root, each with one
// fan-out, way of cutting and place of the data after the other.
func calls(collective schedule.Collective, size int) iter.Seq2[schedule.Call, placed] {
	return func(yield func(schedule.Call, placed) bool) {
		fanouts := []int{0, 1, 3, 2, 4, 16, 5, 7}
		chunks := []int{0, 1, 0, 5, 16, 0, 11}
		places := []placed{nowhere, everywhere, odd}
		n := size
		for _, algorithm := range schedule.Algorithms(collective) {
			for _, length := range lengths(collective, size) {
				for _, root := range roots(collective, size) {
					for _, commutative := range []bool{false, true} {
						if !commutative && !schedule.KeepsOrder(collective, algorithm) ||
							commutative && size > 12 && !changes(collective, algorithm) {
							continue
						}
						// Each is planned in more ways while it is small.
						for range max(1, 3-size/6) {
							c := schedule.Call{Collective: collective, Size: size, Root: root, Length: length}
							c.Options = schedule.Options{
								Algorithm: algorithm, Commutative: commutative,
								Fanout: fanouts[n%len(fanouts)], Chunk: chunks[n%len(chunks)],
							}
							if size > 16 {
								// Not too many pieces for each of many puts.
								c.Chunk *= (length + 79) / 80
							}
							if algorithm == schedule.Direct {
								c.Length = min(length, size+1, 17)
							}
							if slices.Contains([]schedule.Algorithm{schedule.Ring, schedule.Pairwise, schedule.Direct}, algorithm) && size > 24 {
								c.Chunk = 0
							}
							in := places[n%len(places)]
							n++
							if !yield(c, in) {
								return
							}
						}
					}
				}
			}
		}
	}
}
