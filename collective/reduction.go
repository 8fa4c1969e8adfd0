package collective

import (
	"context"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Reduce combines the send of all ranks, element by element and in the order of their
// ranks, in the recv of the root, which is of the same length, and may be the same slice.
// The other ranks' recv is not used. With an operator that is commutative, operands may
// change places.
//
// An operator is called while nothing else of the world moves on, and must not call
// anything of it.
func Reduce[T any](ctx context.Context, c *comm.Comm, send, recv []T, op operator.Op[T], root int, options ...Option) error {
	return newReduce(c, send, recv, op, root, options).run(ctx)
}

// Ireduce begins a Reduce.
func Ireduce[T any](c *comm.Comm, send, recv []T, op operator.Op[T], root int, options ...Option) (*Request, error) {
	return newReduce(c, send, recv, op, root, options).start()
}

func newReduce[T any](c *comm.Comm, send, recv []T, op operator.Op[T], root int, options []Option) prepared {
	w := wanted[T]{kind: schedule.CollectiveReduce, root: root, length: len(send), input: send, op: op.Erased()}
	if c.Rank() == root {
		if err := checkLength("recv", len(recv), len(send), "as send has"); err != nil {
			return refused(c, err)
		}
		w.output = recv
	}
	return prepare(c, w, options)
}

// Allreduce is Reduce with the result in the recv of all ranks.
func Allreduce[T any](ctx context.Context, c *comm.Comm, send, recv []T, op operator.Op[T], options ...Option) error {
	return newAllreduce(c, send, recv, op, options).run(ctx)
}

// Iallreduce begins an Allreduce.
func Iallreduce[T any](c *comm.Comm, send, recv []T, op operator.Op[T], options ...Option) (*Request, error) {
	return newAllreduce(c, send, recv, op, options).start()
}

func newAllreduce[T any](c *comm.Comm, send, recv []T, op operator.Op[T], options []Option) prepared {
	if err := checkLength("recv", len(recv), len(send), "as send has"); err != nil {
		return refused(c, err)
	}
	return prepare(c, wanted[T]{
		kind: schedule.CollectiveAllreduce, length: len(send), input: send, output: recv, op: op.Erased(),
	}, options)
}

// ReduceScatter combines the send of all ranks as Reduce, and gives each rank its part of
// the result in recv: send has as many elements as the recv of all ranks together.
func ReduceScatter[T any](ctx context.Context, c *comm.Comm, send, recv []T, op operator.Op[T], options ...Option) error {
	return newReduceScatter(c, send, recv, op, options).run(ctx)
}

// IreduceScatter begins a ReduceScatter.
func IreduceScatter[T any](c *comm.Comm, send, recv []T, op operator.Op[T], options ...Option) (*Request, error) {
	return newReduceScatter(c, send, recv, op, options).start()
}

func newReduceScatter[T any](c *comm.Comm, send, recv []T, op operator.Op[T], options []Option) prepared {
	if err := checkLength("send", len(send), c.Size()*len(recv), "the size times what recv has"); err != nil {
		return refused(c, err)
	}
	return prepare(c, wanted[T]{
		kind: schedule.CollectiveReduceScatter, length: len(recv), input: send, output: recv, op: op.Erased(),
	}, options)
}
