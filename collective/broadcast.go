package collective

import (
	"context"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Barrier returns when all ranks have called it. Errors are those of the package.
func Barrier(ctx context.Context, c *comm.Comm, options ...Option) error {
	return newBarrier(c, options).run(ctx)
}

// Ibarrier begins a Barrier.
func Ibarrier(c *comm.Comm, options ...Option) (*Request, error) {
	return newBarrier(c, options).start()
}

func newBarrier(c *comm.Comm, options []Option) prepared {
	return prepare(c, wanted[byte]{kind: schedule.CollectiveBarrier}, options)
}

// Bcast gives what the root has in buf to all ranks, in theirs, which are of the same
// length. Errors are those of the package.
func Bcast[T any](ctx context.Context, c *comm.Comm, buf []T, root int, options ...Option) error {
	return newBcast(c, buf, root, options).run(ctx)
}

// Ibcast begins a Bcast.
func Ibcast[T any](c *comm.Comm, buf []T, root int, options ...Option) (*Request, error) {
	return newBcast(c, buf, root, options).start()
}

func newBcast[T any](c *comm.Comm, buf []T, root int, options []Option) prepared {
	w := wanted[T]{kind: schedule.CollectiveBcast, root: root, length: len(buf)}
	if c.Rank() == root {
		w.input = buf
	} else {
		w.output = buf
	}
	return prepare(c, w, options)
}
