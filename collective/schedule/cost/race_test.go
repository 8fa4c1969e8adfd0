//go:build race

package cost_test

// Nothing here is used by two goroutines, so the race detector has little to see, and takes
// its time.
const (
	manyRanks = 1024
	sizeStep  = 8
)
