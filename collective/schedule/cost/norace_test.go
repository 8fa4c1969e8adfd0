//go:build !race

package cost_test

const (
	// manyRanks are as many as the largest jobs have.
	manyRanks = 16384
	// sizeStep is from one size that is tested to the next.
	sizeStep = 1
)

var (
	perNodes       = []int{1, 2, 8}
	monotonicSizes = []int{2, 3, 8, 13, 24}
)
