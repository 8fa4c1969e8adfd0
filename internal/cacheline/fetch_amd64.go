package cacheline

// Fetch has the cache line of p come to this core, to be written, and does not wait for it. That
// another core reads it meanwhile takes it away again. p may be any address.
//
//go:noescape
func Fetch(p *byte)
