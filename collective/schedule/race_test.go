//go:build race

package schedule_test

// Nothing here is used by two goroutines, so the race detector has little to see, and takes
// its time: it gets a sample of the sizes.
const (
	sizeStep = 11
	manyMost = 257
	checks   = "30"
)
