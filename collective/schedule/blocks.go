package schedule

// blocks cuts a length into as many blocks as there are ranks, the first ones one unit
// longer where it cannot be equal ones.
type blocks struct{ size, length int }

// start is where block b begins, and, of b = size, where the last ends.
func (b blocks) start(block int) int {
	return block*(b.length/b.size) + min(block, b.length%b.size)
}

// most is the length of the longest block.
func (b blocks) most() int {
	if b.length == 0 {
		return 0
	}
	return (b.length-1)/b.size + 1
}

// of is block b of a span.
func (b blocks) of(span Span, block int) Span {
	return b.run(span, block, block+1)
}

// run is the blocks from first to below end of a span.
func (b blocks) run(span Span, first, end int) Span {
	start := b.start(first)
	return span.part(start, b.start(end)-start)
}
