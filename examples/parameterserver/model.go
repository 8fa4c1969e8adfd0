package main

import (
	"math"
	"math/rand/v2"
)

const (
	features = 8
	batch    = 16
	rate     = 0.02
)

// truth is what is to be found: what comes of x is its sum of products with it.
var truth = [features]float64{3, -1, 4, 1, -5, 9, 2, -6}

// descend puts the step into change that parameters are to go, by a batch of points.
func descend(parameters, change []float64, random *rand.Rand) {
	clear(change)
	for range batch {
		var x [features]float64
		wrong := 0.0
		for i := range x {
			x[i] = random.NormFloat64()
			wrong += x[i] * (parameters[i] - truth[i])
		}
		for i := range x {
			change[i] -= rate * wrong * x[i] / batch
		}
	}
}

// furthest is the greatest difference of a parameter from what it should be.
func furthest(parameters []float64) (most float64) {
	for i, p := range parameters {
		most = max(most, math.Abs(p-truth[i]))
	}
	return most
}
