//go:build race

package cost_test

// Nothing here is used by two goroutines, so the race detector has little to see, and takes
// its time.
const (
	manyRanks = 512
	sizeStep  = 16
)

var (
	perNodes       = []int{2}
	monotonicSizes = []int{5}
)
