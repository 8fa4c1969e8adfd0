package efa

import (
	"context"
	"net"
	"sync"
	"time"
)

// timeLimit bounds a handshake in time, and ends it when its context ends.
type timeLimit struct {
	ctx  context.Context
	stop func() bool
	mu   sync.Mutex
	tcp  net.Conn
	over bool // the deadline is not for others to move any more
}

func limit(ctx context.Context, tcp net.Conn, until time.Time) *timeLimit {
	l := &timeLimit{ctx: ctx, tcp: tcp}
	_ = tcp.SetDeadline(until)
	l.stop = context.AfterFunc(ctx, func() { l.set(time.Unix(1, 0), true) })
	return l
}

func (l *timeLimit) set(until time.Time, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = last
		_ = l.tcp.SetDeadline(until)
	}
}

// extend moves the limit, unless the context has ended.
func (l *timeLimit) extend(until time.Time) { l.set(until, false) }

// lift takes the limit away, and returns the cause if the context has ended.
func (l *timeLimit) lift() error {
	if !l.stop() && l.ctx.Err() != nil {
		// What comes of that must not come later.
		l.set(time.Unix(1, 0), true)
		return context.Cause(l.ctx)
	}
	l.set(time.Time{}, true)
	return nil
}
