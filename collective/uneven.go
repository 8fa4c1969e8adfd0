package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Blocks says what parts a slice has, one for each rank: how many elements, and where
// they begin, or one behind the other without displacements. Elements between the parts
// are not touched.
type Blocks = schedule.Blocks

// Gatherv is Gather with a count of its own for each rank: blocks are those of the root's
// recv, and the same on all ranks. send has as many elements as the rank's block.
func Gatherv[T any](ctx context.Context, c *comm.Comm, send, recv []T, blocks Blocks, root int, options ...Option) error {
	return newGatherv(c, send, recv, blocks, root, options).run(ctx)
}

// Igatherv begins a Gatherv. blocks belong to the request too.
func Igatherv[T any](c *comm.Comm, send, recv []T, blocks Blocks, root int, options ...Option) (*Request, error) {
	return newGatherv(c, send, recv, blocks, root, options).start()
}

func newGatherv[T any](c *comm.Comm, send, recv []T, blocks Blocks, root int, options []Option) prepared {
	w := wanted[T]{kind: schedule.CollectiveGather, root: root, input: send}
	if c.Rank() == root {
		w.output = recv
	}
	return prepareBlocks(c, w, c.Rank() == root, blocks, options, func(o schedule.Options) (schedule.Plan, error) {
		return schedule.Gatherv(c.Rank(), root, blocks, o)
	})
}

// Allgatherv is Gatherv with the result in the recv of all ranks.
func Allgatherv[T any](ctx context.Context, c *comm.Comm, send, recv []T, blocks Blocks, options ...Option) error {
	return newAllgatherv(c, send, recv, blocks, options).run(ctx)
}

// Iallgatherv begins an Allgatherv. blocks belong to the request too.
func Iallgatherv[T any](c *comm.Comm, send, recv []T, blocks Blocks, options ...Option) (*Request, error) {
	return newAllgatherv(c, send, recv, blocks, options).start()
}

func newAllgatherv[T any](c *comm.Comm, send, recv []T, blocks Blocks, options []Option) prepared {
	w := wanted[T]{kind: schedule.CollectiveAllgather, input: send, output: recv}
	return prepareBlocks(c, w, true, blocks, options, func(o schedule.Options) (schedule.Plan, error) {
		return schedule.Allgatherv(c.Rank(), blocks, o)
	})
}

// prepareBlocks is for calls that bring a block of each rank to recv, which this rank has or
// has not.
func prepareBlocks[T any](c *comm.Comm, w wanted[T], here bool, blocks Blocks, options []Option, plan func(schedule.Options) (schedule.Plan, error)) prepared {
	if err := checkBlocks(c, "recv", len(w.output), here, blocks); err != nil {
		return refused(c, err)
	}
	if err := checkLength("send", len(w.input), blocks.Counts[c.Rank()], "as the rank's block"); err != nil {
		return refused(c, err)
	}
	w.uneven = &uneven{alike: blocks, output: &blocks}
	return prepareUneven(c, w, options, plan)
}

// Scatterv is Scatter with a count of its own for each rank: blocks are those of the root's
// send, and the same on all ranks. recv has as many elements as the rank's block.
func Scatterv[T any](ctx context.Context, c *comm.Comm, send []T, blocks Blocks, recv []T, root int, options ...Option) error {
	return newScatterv(c, send, blocks, recv, root, options).run(ctx)
}

// Iscatterv begins a Scatterv. blocks belong to the request too.
func Iscatterv[T any](c *comm.Comm, send []T, blocks Blocks, recv []T, root int, options ...Option) (*Request, error) {
	return newScatterv(c, send, blocks, recv, root, options).start()
}

func newScatterv[T any](c *comm.Comm, send []T, blocks Blocks, recv []T, root int, options []Option) prepared {
	if c.Rank() != root {
		send = nil
	}
	if err := checkBlocks(c, "send", len(send), c.Rank() == root, blocks); err != nil {
		return refused(c, err)
	}
	if err := checkLength("recv", len(recv), blocks.Counts[c.Rank()], "as the rank's block"); err != nil {
		return refused(c, err)
	}
	w := wanted[T]{kind: schedule.CollectiveScatter, root: root, input: send, output: recv, uneven: &uneven{alike: blocks}}
	return prepareUneven(c, w, options, func(o schedule.Options) (schedule.Plan, error) {
		return schedule.Scatterv(c.Rank(), root, blocks, o)
	})
}

// ReduceScatterv is ReduceScatter with a count of its own for each rank, the same on all.
func ReduceScatterv[T any](ctx context.Context, c *comm.Comm, send, recv []T, counts []int, op operator.Op[T], options ...Option) error {
	return newReduceScatterv(c, send, recv, counts, op, options).run(ctx)
}

// IreduceScatterv begins a ReduceScatterv. counts belong to the request too.
func IreduceScatterv[T any](c *comm.Comm, send, recv []T, counts []int, op operator.Op[T], options ...Option) (*Request, error) {
	return newReduceScatterv(c, send, recv, counts, op, options).start()
}

func newReduceScatterv[T any](c *comm.Comm, send, recv []T, counts []int, op operator.Op[T], options []Option) prepared {
	if err := checkBlocks(c, "send", len(send), true, Blocks{Counts: counts}); err != nil {
		return refused(c, err)
	}
	if err := checkLength("recv", len(recv), counts[c.Rank()], "the rank's count"); err != nil {
		return refused(c, err)
	}
	w := wanted[T]{kind: schedule.CollectiveReduceScatter, input: send, output: recv, op: op.Erased(), uneven: &uneven{alike: Blocks{Counts: counts}}}
	return prepareUneven(c, w, options, func(o schedule.Options) (schedule.Plan, error) {
		return schedule.ReduceScatterv(c.Rank(), counts, o)
	})
}

// Alltoallv is Alltoall with a count and a place of its own for each pair of ranks: send has
// a block for each, and recv one of each, which must be as long as that rank's block for
// this one: two lengths, neither of which is 0, are a *MismatchError. Where one is 0 and the
// other is not, the two may wait for ever. If send and recv have something in common, they
// are copied.
func Alltoallv[T any](ctx context.Context, c *comm.Comm, send []T, sent Blocks, recv []T, received Blocks, options ...Option) error {
	return newAlltoallv(c, send, sent, recv, received, options).run(ctx)
}

// Ialltoallv begins an Alltoallv. The blocks belong to the request too.
func Ialltoallv[T any](c *comm.Comm, send []T, sent Blocks, recv []T, received Blocks, options ...Option) (*Request, error) {
	return newAlltoallv(c, send, sent, recv, received, options).start()
}

func newAlltoallv[T any](c *comm.Comm, send []T, sent Blocks, recv []T, received Blocks, options []Option) prepared {
	if err := checkBlocks(c, "send", len(send), true, sent); err != nil {
		return refused(c, err)
	}
	if err := checkBlocks(c, "recv", len(recv), true, received); err != nil {
		return refused(c, err)
	}
	if err := checkLength("the block of recv for the rank itself", received.Counts[c.Rank()], sent.Counts[c.Rank()], "as that of send"); err != nil {
		return refused(c, err)
	}
	w := wanted[T]{kind: schedule.CollectiveAlltoall, input: send, output: recv}
	w.uneven = &uneven{output: &received, pairs: &pairs{sent: sent.Counts, received: spansOf(received)}}
	// What is chosen by size is for equal blocks.
	options = append([]Option{WithAlgorithm(schedule.Pairwise)}, options...)
	return prepareUneven(c, w, options, func(o schedule.Options) (schedule.Plan, error) {
		// Each rank counts from the place that its peer tells it.
		return schedule.Alltoallv(c.Rank(), sent, received, make([]int, c.Size()), o)
	})
}

// opened is where a source counts from in the window, and the fingerprint that it has if
// it makes the same call.
func (c *call) opened(source int) (from int, fingerprint uint64) {
	if u := c.shape.uneven; u != nil && u.pairs != nil {
		block := u.pairs.received[source]
		return block.first * c.shape.element, c.fingerprintOf(block.end - block.first)
	}
	return 0, c.fingerprintOf(0)
}

// fingerprintWith is that of a call with a rank to which this one puts.
func (c *call) fingerprintWith(peer int) uint64 {
	if u := c.shape.uneven; u != nil && u.pairs != nil {
		return c.fingerprintOf(u.pairs.sent[peer])
	}
	return c.fingerprintOf(0)
}

// fingerprintOf is that of a pair of ranks of which one puts so many elements to the other, or
// of all, with 0, where the plan says how many.
func (c *call) fingerprintOf(count int) uint64 {
	h := hash(c.planned.fingerprint)
	h.add(count)
	h.addText(c.apply.Name())
	h.addText(c.apply.TypeName())
	return uint64(h)
}

// prepareUneven is prepare for a call with counts, which says how to plan this rank's part.
func prepareUneven[T any](c *comm.Comm, w wanted[T], options []Option, plan func(schedule.Options) (schedule.Plan, error)) prepared {
	for _, n := range w.uneven.alike.Counts {
		w.length = max(w.length, n)
	}
	p := prepare(c, w, options)
	if p.err != nil {
		return p
	}
	var err error
	if w.uneven.plan, err = plan(p.call.shape.Options); err != nil {
		p.call.release()
		return refused(c, argumentError(err))
	}
	return p
}

// checkBlocks says what is wrong with the blocks of a slice, which this rank has or has
// not.
func checkBlocks(c *comm.Comm, name string, length int, here bool, b Blocks) error {
	if len(b.Counts) != c.Size() || b.Displacements != nil && len(b.Displacements) != c.Size() {
		return &ArgumentError{
			"blocks", fmt.Sprintf("of %d counts and %d displacements", len(b.Counts), len(b.Displacements)),
			fmt.Sprintf("%d of each, or no displacements", c.Size()),
		}
	}
	if i := slices.IndexFunc(b.Counts, func(n int) bool { return n < 0 }); i >= 0 {
		return &ArgumentError{"blocks", fmt.Sprintf("with %d for rank %d", b.Counts[i], i), "no negative count"}
	}
	if !here {
		return nil
	}
	for rank, s := range spansOf(b) {
		switch {
		case s.first < 0:
			return &ArgumentError{"blocks", fmt.Sprintf("with one at %d for rank %d", s.first, rank), "no negative displacement"}
		case s.end < s.first:
			return &ArgumentError{
				"blocks", fmt.Sprintf("with one of %d elements behind %d for rank %d", b.Counts[rank], s.first, rank),
				"what can be counted",
			}
		case s.end > length:
			return &ArgumentError{
				name, fmt.Sprintf("of %d elements", length),
				fmt.Sprintf("one with %d to %d, the block of rank %d", s.first, s.end, rank),
			}
		}
	}
	return nil
}

// span is a part of a slice.
type span struct{ first, end int }

// spansOf are the parts that blocks stand for.
func spansOf(b Blocks) []span {
	spans := make([]span, len(b.Counts))
	next := 0
	for i, n := range b.Counts {
		if b.Displacements != nil {
			next = b.Displacements[i]
		}
		spans[i] = span{next, next + n}
		next += n
	}
	return spans
}
