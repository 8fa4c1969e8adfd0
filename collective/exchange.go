package collective

import (
	"context"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Gather gives the root the send of all ranks, in the order of their ranks, in recv, which
// has the size times as many elements. The root's send may be its part of recv. The other
// ranks' recv is not used.
func Gather[T any](ctx context.Context, c *comm.Comm, send, recv []T, root int, options ...Option) error {
	return newGather(c, send, recv, root, options).run(ctx)
}

// Igather begins a Gather.
func Igather[T any](c *comm.Comm, send, recv []T, root int, options ...Option) (*Request, error) {
	return newGather(c, send, recv, root, options).start()
}

func newGather[T any](c *comm.Comm, send, recv []T, root int, options []Option) prepared {
	w := wanted[T]{kind: schedule.CollectiveGather, root: root, length: len(send), input: send}
	if c.Rank() == root {
		if err := checkLength("recv", len(recv), c.Size()*len(send), "the size times what send has"); err != nil {
			return refused(c, err)
		}
		w.output = recv
	}
	return prepare(c, w, options)
}

// Scatter gives each rank its part of the root's send, in the order of the ranks, in recv:
// send has the size times as many elements. The other ranks' send is not used.
func Scatter[T any](ctx context.Context, c *comm.Comm, send, recv []T, root int, options ...Option) error {
	return newScatter(c, send, recv, root, options).run(ctx)
}

// Iscatter begins a Scatter.
func Iscatter[T any](c *comm.Comm, send, recv []T, root int, options ...Option) (*Request, error) {
	return newScatter(c, send, recv, root, options).start()
}

func newScatter[T any](c *comm.Comm, send, recv []T, root int, options []Option) prepared {
	w := wanted[T]{kind: schedule.CollectiveScatter, root: root, length: len(recv), output: recv}
	if c.Rank() == root {
		if err := checkLength("send", len(send), c.Size()*len(recv), "the size times what recv has"); err != nil {
			return refused(c, err)
		}
		w.input = send
	}
	return prepare(c, w, options)
}

// Allgather is Gather with the result in the recv of all ranks, of which each may have its send
// there.
func Allgather[T any](ctx context.Context, c *comm.Comm, send, recv []T, options ...Option) error {
	return newAllgather(c, send, recv, options).run(ctx)
}

// Iallgather begins an Allgather.
func Iallgather[T any](c *comm.Comm, send, recv []T, options ...Option) (*Request, error) {
	return newAllgather(c, send, recv, options).start()
}

func newAllgather[T any](c *comm.Comm, send, recv []T, options []Option) prepared {
	if err := checkLength("recv", len(recv), c.Size()*len(send), "the size times what send has"); err != nil {
		return refused(c, err)
	}
	return prepare(c, wanted[T]{
		kind: schedule.CollectiveAllgather, length: len(send), input: send, output: recv,
	}, options)
}

// Alltoall gives each rank its part of the send of all ranks, in the order of their ranks,
// in recv, which may be the same slice. Both have the same length, a multiple of the size.
func Alltoall[T any](ctx context.Context, c *comm.Comm, send, recv []T, options ...Option) error {
	return newAlltoall(c, send, recv, options).run(ctx)
}

// Ialltoall begins an Alltoall.
func Ialltoall[T any](c *comm.Comm, send, recv []T, options ...Option) (*Request, error) {
	return newAlltoall(c, send, recv, options).start()
}

func newAlltoall[T any](c *comm.Comm, send, recv []T, options []Option) prepared {
	length := len(send) / c.Size()
	if err := checkLength("send", len(send), c.Size()*length, "or another multiple of the size"); err != nil {
		return refused(c, err)
	}
	if err := checkLength("recv", len(recv), len(send), "as send has"); err != nil {
		return refused(c, err)
	}
	return prepare(c, wanted[T]{
		kind: schedule.CollectiveAlltoall, length: length, input: send, output: recv,
	}, options)
}
