//go:build !linux

package kernelcopy

// Measure measures nothing here.
func Measure() Measured { return Measured{} }
