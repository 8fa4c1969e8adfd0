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

// calls yields calls of a collective: every algorithm, length and root, each with one
// fan-out, way of cutting and place of the data after the other.
func calls(collective schedule.Collective, size int) iter.Seq2[schedule.Call, placed] {
	return func(yield func(schedule.Call, placed) bool) {
		fanouts := []int{0, 1, 3, 2, 4, 16, 5, 7}
		chunks := []int{0, 1, 0, 5, 16}
		places := []placed{nowhere, everywhere, odd}
		n := size
		for _, algorithm := range schedule.Algorithms(collective) {
			for _, length := range lengths(collective, size) {
				for _, root := range roots(collective, size) {
					for _, commutative := range []bool{false, true} {
						if !commutative && !schedule.KeepsOrder(collective, algorithm) {
							continue
						}
						for range 2 {
							c := schedule.Call{Collective: collective, Size: size, Root: root, Length: length}
							c.Options = schedule.Options{
								Algorithm: algorithm, Commutative: commutative,
								Fanout: fanouts[n%len(fanouts)], Chunk: chunks[n%len(chunks)],
							}
							in := places[n%len(places)]
							n++
							if collective == schedule.CollectiveAlltoall && n%2 == 0 {
								in = everywhere
							} else if collective == schedule.CollectiveAlltoall {
								in = nowhere
							}
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
