//go:build !amd64

package cacheline

// Rest does nothing here.
func Rest() {}
