package cacheline

// Rest gives the other cores a moment before this one looks again at what one of them is about to write.
//
//go:noescape
func Rest()
