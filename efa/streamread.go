package efa

// takeBytes gives the first reader, a stream's, what is in the messages at the
// front. One of which only a part fits stays, with Conn.taken saying how much of
// it is gone.
func (r *Reactor) takeBytes(c *Conn) {
	k, n := c.readers[0], 0
	for n < len(k.buf) {
		_, in, _, finished, _ := c.reads.Front()
		if !finished {
			break
		}
		m := copy(k.buf[n:], in.data[c.taken:])
		n += m
		if c.taken += m; c.taken < len(in.data) {
			break
		}
		r.consume(c)
	}
	// Empty messages are nothing to a stream: it goes on waiting.
	if n > 0 {
		c.popReader().finish(n, nil)
	}
}
