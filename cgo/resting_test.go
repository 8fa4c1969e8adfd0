package cgo_test

import "testing"

// TestResting takes turns with a queue in C whose looks take long, or not: the rest
// between two looks follows, in its bounds.
func TestResting(t *testing.T) {
	requireOK(t, compileWithTurns(t, "resting"))
}
