package efa

import (
	"context"
	"net"
	"time"
)

// CloseContext is Close with ctx in the place of Config.DrainTimeout: when ctx ends
// before the peer has everything, the connection ends at once, and the error has
// ctx's cause. If Close was called already, it may bring an earlier end than that
// would have had.
func (c *Conn) CloseContext(ctx context.Context) error {
	// Nothing new begins, even if ctx has ended.
	c.closing.Store(true)
	// The end begins before ctx can bring it about: or else a ctx that has ended
	// already would have ended the connection before anything was under way that
	// could be lost, as CloseNow does, and the result would be nil.
	c.reactor.do(func() { c.reactor.shut(c) })
	stop := context.AfterFunc(ctx, func() {
		c.reactor.do(func() { c.reactor.fail(c, net.ErrClosed, context.Cause(ctx)) })
	})
	defer stop()
	return c.close(untilContextEnds)
}

// untilContextEnds is longer than any program runs.
const untilContextEnds = 1 << 62 * time.Nanosecond
