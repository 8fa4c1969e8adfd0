package main

import (
	"math"
	"math/rand/v2"
)

// point is a place in the plane and which of two spirals it is on.
type point struct {
	x, y  float64
	label float64 // 0 or 1
}

// spirals are points on two spirals that wind around each other, with some noise. The
// same seed makes the same points.
func spirals(n int, seed uint64) []point {
	random := rand.New(rand.NewPCG(seed, 1))
	points := make([]point, n)
	for i := range points {
		label := float64(i % 2)
		turn := 0.3 + random.Float64()
		angle := turn*2*math.Pi + label*math.Pi
		points[i] = point{
			x:     turn*math.Cos(angle) + random.NormFloat64()*0.03,
			y:     turn*math.Sin(angle) + random.NormFloat64()*0.03,
			label: label,
		}
	}
	return points
}

// hidden is how many units there are between the two inputs and the output.
const hidden = 24

// parameters are the weights of a network with one hidden layer: of each hidden unit those
// of x, of y, its bias and its weight in the output, and at the end the output's bias.
type parameters []float64

const parameterCount = 4*hidden + 1

// initial is the same on all ranks.
func initial() parameters {
	random := rand.New(rand.NewPCG(7, 2))
	p := make(parameters, parameterCount)
	for i := range p {
		p[i] = random.NormFloat64()
	}
	return p
}

// learn adds the gradient of the loss of a batch, and the loss, to sum, which has a
// place more than there are parameters.
func (p parameters) learn(batch []point, sum []float64) {
	var activations [hidden]float64
	for _, at := range batch {
		out := p[4*hidden]
		for h := range hidden {
			w := p[4*h : 4*h+4]
			activations[h] = math.Tanh(w[0]*at.x + w[1]*at.y + w[2])
			out += w[3] * activations[h]
		}
		guess := 1 / (1 + math.Exp(-out))
		sum[parameterCount] -= at.label*math.Log(guess+1e-12) + (1-at.label)*math.Log(1-guess+1e-12)
		wrong := guess - at.label
		sum[4*hidden] += wrong
		for h := range hidden {
			a := activations[h]
			back := wrong * p[4*h+3] * (1 - a*a)
			sum[4*h] += back * at.x
			sum[4*h+1] += back * at.y
			sum[4*h+2] += back
			sum[4*h+3] += wrong * a
		}
	}
}

// step moves against the gradient of a batch of so many points.
func (p parameters) step(sum []float64, points int, rate float64) {
	for i := range p {
		p[i] -= rate * sum[i] / float64(points)
	}
}
