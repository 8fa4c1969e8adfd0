//go:build !race

package cost_test

const (
	manyRanks = 16384
	sizeStep  = 1
)
