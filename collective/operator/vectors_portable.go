//go:build !amd64

package operator

// sumVectors has no vectors for this processor.
func sumVectors[T Number](_, _, _ []T) (done int) { return 0 }
