package efa

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// streamDeadline is that of one direction of a stream. It can be moved while
// calls are waiting. The zero value is none.
type streamDeadline struct {
	// limit is what calls wait with. One that has passed stays so for those who
	// have it, and is replaced by a new one when the deadline is moved.
	limit atomic.Pointer[limitPassed]

	mu    sync.Mutex
	at    time.Time
	timer *time.Timer
}

// limitPassed is the context of a call: it ends when the deadline passes. Unlike
// those of package context it costs a call nothing, and does not say when.
type limitPassed struct {
	done chan struct{}
	// set: there is a deadline, though it may be far away.
	set atomic.Bool
}

func (*limitPassed) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*limitPassed) Value(any) any               { return nil }
func (l *limitPassed) Done() <-chan struct{}     { return l.done }

func (l *limitPassed) Err() error {
	select {
	case <-l.done:
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

var _ context.Context = (*limitPassed)(nil)

// current is what a call that begins now waits with.
func (d *streamDeadline) current() *limitPassed {
	if l := d.limit.Load(); l != nil {
		return l
	}
	// Even without a deadline: one may be set while the call waits.
	d.limit.CompareAndSwap(nil, &limitPassed{done: make(chan struct{})})
	return d.limit.Load()
}

// move sets the deadline, for calls that wait as well; the zero time is none.
func (d *streamDeadline) move(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = at
	if d.timer != nil {
		d.timer.Stop()
	}
	l := d.current()
	if l.Err() != nil {
		l = &limitPassed{done: make(chan struct{})}
		defer d.limit.Store(l)
	}
	l.set.Store(!at.IsZero())
	if at.IsZero() {
		return
	}
	switch left := time.Until(at); {
	case left <= 0:
		close(l.done)
	case d.timer == nil:
		d.timer = time.AfterFunc(left, d.fire)
	default:
		d.timer.Reset(left)
	}
}

// fire is the timer's. It may come late, for a deadline that has been moved.
func (d *streamDeadline) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.limit.Load()
	if d.at.IsZero() || l.Err() != nil {
		return
	}
	if left := time.Until(d.at); left > 0 {
		d.timer.Reset(left)
		return
	}
	close(l.done)
}
