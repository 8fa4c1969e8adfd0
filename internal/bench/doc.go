// Package bench has what all programs share that measure weft beside others: on what
// machine it was, what a run took, and what is said where something cannot be run.
package bench
