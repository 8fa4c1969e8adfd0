//go:build !amd64

package cacheline

// Fetch does nothing here.
func Fetch(*byte) {}
