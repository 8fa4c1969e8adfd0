//go:build !race

package schedule_test

const (
	// sizeStep is from one size that is tested to the next.
	sizeStep = 1
	// manyMost is the largest.
	manyMost = 4096
	// checks is how many random cases there are of each kind.
	checks = "200"
)
