package collective

import (
	"context"

	"github.com/weft-go/weft/collective/schedule"
)

// Request is a call that goes on by itself; the zero Request is done. What it was given
// belongs to it until it is done. One goroutine at a time waits for it or tests it: of several
// at once, some wait for ever. How it ended is said again to whoever asks again. A call cannot
// be taken back: only Close of the communicator ends it before its time.
type Request struct {
	call *call // which may serve another when it is done: nil then
	err  error // how it ended
}

// Wait waits until the call is done, and returns what the blocking function would. If ctx ends
// first, the error is the cause of ctx (context.Cause), and the call goes on.
func (q *Request) Wait(ctx context.Context) error {
	if q.call == nil {
		return q.err
	}
	if err := q.call.wait(ctx); err != nil {
		return err
	}
	return q.end()
}

// Test says whether the call is done, and if so what Wait would. It drives the messages of
// all communicators on, if nobody else does.
func (q *Request) Test() (done bool, err error) {
	c := q.call
	if c == nil {
		return true, q.err
	}
	if !c.done.Load() {
		c.group.comm.Reactor().Poll()
	}
	if !c.done.Load() {
		return false, nil
	}
	// The role may still be in the middle of ending it.
	_ = c.wait(context.Background())
	return true, q.end()
}

// end notes how a call has ended that was waited for.
func (q *Request) end() error {
	q.call, q.err = nil, q.call.result()
	return q.err
}

// wait waits for the end of a call that has begun. The only error is that ctx has ended
// before.
func (c *call) wait(ctx context.Context) error {
	reactor := c.group.comm.Reactor()
	var err error
	if c.idle {
		// It has been waited for before.
		c.idle = false
		err = reactor.Run(ctx, &c.task, c)
	} else {
		err = reactor.Await(ctx, &c.task)
	}
	if err != nil {
		c.idle = true
		return context.Cause(ctx)
	}
	return nil
}

// result is how a call has ended, which gives it back.
func (c *call) result() error {
	err := c.err
	if err == nil {
		// Of one that has failed, writes may still be on their way.
		c.release()
	}
	return err
}

// prepared is a call that may begin, or why it may not.
type prepared struct {
	call *call
	err  error
}

// run has a call begin, and waits for its end.
func (p prepared) run(ctx context.Context) error {
	if p.err != nil {
		return p.err
	}
	p.call.bound = true
	p.call.task.Expect(p.call.moved())
	_ = p.call.group.comm.Reactor().Run(ctx, &p.call.task, p.call)
	return p.call.result()
}

// start has a call begin.
func (p prepared) start() (*Request, error) {
	if p.err != nil {
		return nil, p.err
	}
	p.call.task.Expect(0)
	p.call.group.comm.Reactor().Begin(&p.call.task, p.call)
	return &Request{call: p.call}, nil
}

// Option adjusts one call. All ranks give the same. What it sets InPlace and Commutative to
// does not count: they follow from the slices and the operator. It must not keep what it is given,
// which is that of other calls afterwards.
type Option func(*schedule.Options)

// WithAlgorithm has a call done by an algorithm, whatever its size.
func WithAlgorithm(a schedule.Algorithm) Option {
	return func(o *schedule.Options) { o.Algorithm = a }
}

// moved is how many bytes are on their way for a call, about, or 0 if they are few.
func (c *call) moved() int {
	if n := max(len(c.input), len(c.output)); n >= leastDirect {
		return n
	}
	return 0
}
