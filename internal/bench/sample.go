package bench

import "slices"

// Sample is what one run took: seconds an operation, or operations a second.
type Sample struct {
	Mean float64 // of the whole run
	// Typical is the median of equal parts of the run, 0 where the program tells only the
	// mean.
	Typical float64
	// Operations is how many there were, if the program has found that out by itself.
	Operations int
}

// NotHereError is the reason why a baseline cannot be run on this machine.
type NotHereError struct{ Err error }

func (e NotHereError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e NotHereError) Unwrap() error { return e.Err }

// LeastRounds is how many rounds there are at least, so that a median means something.
const LeastRounds = 5

// Median is the value in the middle, of at least one.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Ratios has the ratio of each round: a round's two runs saw the machine in about the same
// state.
func Ratios(mine, theirs []float64) []float64 {
	ratios := make([]float64, min(len(mine), len(theirs)))
	for i := range ratios {
		ratios[i] = mine[i] / theirs[i]
	}
	return ratios
}
