package comm

import (
	"context"
	"errors"

	"github.com/weft-go/weft/efa"
)

// Request is a send or a receive that goes on by itself; the zero Request is none. It
// ends once, and Wait, Test, WaitAll or WaitAny says how; after that it is none, and so are
// copies of it: there is nothing to wait for, and its Status is empty. One goroutine at a time
// waits for it or tests it. Any may Cancel it meanwhile.
type Request struct {
	op     *operation
	served uint64 // as that of op, which serves other requests later
}

// over says that there is nothing to wait for any more.
func (q Request) over() bool { return q.op == nil || q.op.served.Load() != q.served }

// start has an operation begin. Of none, nothing begins.
func (op *operation) start() Request {
	if op == nil {
		return Request{}
	}
	op.requested = true
	q := Request{op, op.served.Load()}
	op.begin()
	return q
}

// Wait waits until the request is done, and returns what the blocking call would. If
// ctx ends first, the error is the cause of ctx (context.Cause), and the request goes on:
// it can be waited for again.
func (q Request) Wait(ctx context.Context) (Status, error) {
	if q.over() {
		return Status{}, nil
	}
	op := q.op
	if err := op.wait(ctx); err != nil {
		return Status{}, context.Cause(ctx)
	}
	return op.result()
}

// Test says whether the request is done, and if so what Wait would. It drives the
// messages of all communicators on, if nobody else does.
func (q Request) Test() (status Status, done bool, err error) {
	if q.over() {
		return Status{}, true, nil
	}
	op := q.op
	if !op.done.Load() {
		op.engine.reactor.Poll()
		if !op.done.Load() {
			return Status{}, false, nil
		}
	}
	// The role may still be in the middle of ending it.
	_ = op.wait(context.Background())
	status, err = op.result()
	return status, true, err
}

// Cancel ends a receive for which there is no message yet, and a send that has not
// begun, with ErrCanceled. Any other goes on. Either way it has to be waited for. Of a
// request that has ended, even if it was waited for and its memory serves another by now,
// Cancel does nothing.
func (q Request) Cancel() {
	op := q.op
	if op == nil {
		return
	}
	op.engine.do(func(p efa.Progress) {
		// In this order: whoever has waited for it makes it another's, and then not done.
		if !op.done.Load() && !q.over() {
			op.cancel(p, ErrCanceled)
		}
	})
}

// finish is Wait for a request that nobody else will wait for.
func (q Request) finish(ctx context.Context) (Status, error) {
	op := q.op
	if op.wait(ctx) == nil {
		return op.result()
	}
	return op.giveUp(context.Cause(ctx))
}

// WaitAll waits for all requests, in their order, and sets each that it has waited for to
// the zero Request; zero ones are left out. The errors of those that failed are joined. If
// more than one of them is an *efa.InFlightError, efa.Released waits for all of their
// buffers, where errors.As finds the first only.
//
// If ctx ends first, its cause (context.Cause) is joined to them, and the requests from the
// first one on that was not done stay as they are, done or not: they can be waited for
// again. The statuses are lost. Where you need them, or which request failed, Wait for
// each.
func WaitAll(ctx context.Context, requests []Request) error {
	var errs []error
	for i, q := range requests {
		if q.over() {
			requests[i] = Request{}
			continue
		}
		op := q.op
		if err := op.wait(ctx); err != nil {
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
		_, err := op.result()
		requests[i] = Request{}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// WaitAny waits until one of the requests is done, and returns which, and what its
// Wait would. Zero requests are left out; without any other, index is -1. The one that is
// done is the zero Request in requests then. If ctx ends first, index is -1, and the error
// is the cause of ctx (context.Cause). All requests are of one world.
func WaitAny(ctx context.Context, requests []Request) (index int, status Status, err error) {
	a := &anyOf{}
	for _, q := range requests {
		if !q.over() {
			a.engine = q.op.engine
			a.operations = append(a.operations, q.op)
		}
	}
	if a.engine == nil {
		return -1, Status{}, nil
	}
	waitErr := a.engine.reactor.Run(ctx, &a.task, a)
	a.engine.do(a.leave)
	if waitErr != nil {
		return -1, Status{}, context.Cause(ctx)
	}
	for i, q := range requests {
		if !q.over() && q.op.done.Load() {
			op := q.op
			_ = op.wait(context.Background())
			status, err = op.result()
			requests[i] = Request{}
			return i, status, err
		}
	}
	return -1, Status{}, nil
}

// anyOf is a wait for any of some operations.
type anyOf struct {
	engine     *engine
	task       efa.Task
	operations []*operation
	over       bool
}

// Start implements efa.Work.
func (a *anyOf) Start(p efa.Progress) {
	for _, op := range a.operations {
		op.any = a
		if op.done.Load() {
			a.notice(p)
		}
	}
}

// Abandon implements efa.Work.
func (a *anyOf) Abandon(p efa.Progress, why error) {
	if !a.over {
		a.over = true
		p.Finish(&a.task, why)
	}
}

// notice ends the wait.
func (a *anyOf) notice(p efa.Progress) {
	if !a.over {
		a.over = true
		p.Finish(&a.task, nil)
	}
}

func (a *anyOf) leave(efa.Progress) {
	for _, op := range a.operations {
		op.any = nil
	}
}

// wait waits for an operation that has begun; an error says that ctx has ended first.
func (op *operation) wait(ctx context.Context) error {
	if op.idle {
		// It has been waited for before.
		op.idle = false
		if err := op.run(ctx); err != nil {
			op.idle = true
			return err
		}
		return nil
	}
	if err := op.engine.reactor.Await(ctx, &op.task); err != nil {
		op.idle = true
		return err
	}
	return nil
}

// result takes the result of an operation that is done, and gives it back.
func (op *operation) result() (Status, error) {
	status, err := op.status, op.err
	if err != nil {
		var in *efa.InFlightError
		if errors.As(err, &in) {
			return status, err
		}
	}
	op.release()
	return status, err
}

// runToEnd has an operation begin and end.
func (op *operation) runToEnd(ctx context.Context) (Status, error) {
	if err := context.Cause(ctx); err != nil {
		op.release()
		return Status{}, err
	}
	return op.runOut(ctx)
}

// runOut is runToEnd of an operation that must begin, even if ctx has ended.
func (op *operation) runOut(ctx context.Context) (Status, error) {
	if op.run(ctx) == nil {
		return op.result()
	}
	return op.giveUp(context.Cause(ctx))
}

// giveUp ends an operation that nobody will wait for, if it can be.
func (op *operation) giveUp(why error) (Status, error) {
	var done, asked bool
	released := make(chan struct{})
	op.engine.do(func(p efa.Progress) {
		op.cancel(p, why)
		if done = op.done.Load(); !done {
			op.released, asked = released, op.ending != nil
		}
	})
	if asked {
		// The provider decides soon whether there was a message first.
		ctx, cancel := context.WithTimeout(context.Background(), letGo)
		defer cancel()
		done = op.run(ctx) == nil
	}
	if done {
		return op.result()
	}
	return Status{}, &efa.InFlightError{Err: why, Released: released}
}
