package job

import (
	"context"
	"fmt"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/cachedcopy"
)

// work is what a rank does in a case.
type work struct {
	call func() error
	// check looks at the result of a call, once.
	check func() error
	// rooted: a rank may leave the call before all have begun it.
	rooted bool
	// close gives back what it has, if that is not nil.
	close func() error
}

// newWork makes what a rank does, with its data in kept, unless the case wants an arena.
func newWork(ctx context.Context, world *comm.Comm, c Case, kept []byte) (work, error) {
	var options []collective.Option
	if c.Algorithm != schedule.Default {
		options = append(options, collective.WithAlgorithm(c.Algorithm))
	}
	n := c.Bytes / elementSize
	m := memory{all: kept}
	switch c.Work {
	case PingPong:
		return pingPong(ctx, world, m.bytes(c.Bytes), m.bytes(c.Bytes)), nil
	case Combine:
		a, b, sum := m.operand(0, n), m.operand(1, n), operator.Sum[float32]()
		return work{call: func() error { return sum.Apply(a, a, b) }}, nil
	case Copy:
		a, b := m.bytes(c.Bytes), m.bytes(c.Bytes)
		return work{call: func() error { cachedcopy.Copy(a, b); return nil }}, nil
	case Empty:
		return work{call: func() error { return collective.Bcast(ctx, world, []float32{}, 0, options...) }}, nil
	case Stream:
		a := m.operand(0, n)
		return work{call: func() error { return collective.Bcast(ctx, world, a, 0, options...) }}, nil
	}
	kind, err := schedule.ParseCollective(c.Work)
	if err != nil {
		return work{}, fmt.Errorf("a rank has no work %q: %w", c.Work, err)
	}
	if c.Arena {
		if m.arena, err = fabric.NewArena(len(kept)); err != nil {
			return work{}, err
		}
		m.all = m.arena.Bytes()
	}
	w := collectiveWork(ctx, world, kind, n, options, &m)
	w.close = m.close
	return w, nil
}

// memory is where the data of a case are: in an arena, if there is one, or in what a rank keeps
// for all its cases, so that those are compared that have the same pages.
type memory struct {
	arena *fabric.Arena
	all   []byte // of the arena, or what is kept
	used  int
}

const pageSize = 4 << 10

// keep makes memory for any of the cases.
func keep(cases []Case, ranks int) []byte {
	most := 0
	for _, c := range cases {
		// Half of it is what is registered.
		most = max(most, c.Memory(ranks)/ranks/2)
	}
	return make([]byte, most+2*pageSize)
}

func (m *memory) bytes(n int) []byte {
	part := m.all[m.used:][:n:n]
	clear(part)
	m.used += (n + pageSize - 1) &^ (pageSize - 1)
	return part
}

func (m *memory) floats(n int) []float32 {
	values, err := operator.Elements[float32](m.bytes(n * elementSize))
	if err != nil {
		panic(err) // it begins at a page
	}
	return values
}

func (m *memory) close() error {
	if m.arena == nil {
		return nil
	}
	return m.arena.Close()
}

// operand is what a rank gives: short numbers, so that sums are exact.
func (m *memory) operand(rank, n int) []float32 {
	values := m.floats(n)
	for i := range values {
		values[i] = float32(rank + i%7)
	}
	return values
}

func collectiveWork(ctx context.Context, c *comm.Comm, kind schedule.Collective, n int, options []collective.Option, m *memory) work {
	rank, size := c.Rank(), c.Size()
	const root = 0
	blocks := func(atRoot, elsewhere int) int {
		if rank == root {
			return atRoot * n
		}
		return elsewhere * n
	}
	var in, out []float32
	var call func() error
	sum, sums := operator.Sum[float32](), float32(size*(size-1)/2)
	mine := func(i int) int { return rank*n + i%n }
	of := func(i int) int { return i / n }
	var want func(i int) float32
	total := func(i int) float32 { return sums + float32(size*(i%7)) }
	rooted := false
	switch kind {
	case schedule.CollectiveBarrier:
		call = func() error { return collective.Barrier(ctx, c, options...) }
	case schedule.CollectiveBcast:
		rooted = true
		in, out = m.operand(rank, blocks(1, 0)), m.floats(blocks(0, 1))
		buf := out
		if rank == root {
			buf = in
		}
		call = func() error { return collective.Bcast(ctx, c, buf, root, options...) }
		want = func(i int) float32 { return float32(i % 7) }
	case schedule.CollectiveReduce:
		rooted = true
		in, out = m.operand(rank, n), m.floats(blocks(1, 0))
		call = func() error { return collective.Reduce(ctx, c, in, out, sum, root, options...) }
		want = total
	case schedule.CollectiveAllreduce:
		in, out = m.operand(rank, n), m.floats(n)
		call = func() error { return collective.Allreduce(ctx, c, in, out, sum, options...) }
		want = total
	case schedule.CollectiveGather:
		rooted = true
		in, out = m.operand(rank, n), m.floats(blocks(size, 0))
		call = func() error { return collective.Gather(ctx, c, in, out, root, options...) }
		want = func(i int) float32 { return float32(of(i) + i%n%7) }
	case schedule.CollectiveScatter:
		rooted = true
		in, out = m.operand(rank, blocks(size, 0)), m.floats(n)
		call = func() error { return collective.Scatter(ctx, c, in, out, root, options...) }
		want = func(i int) float32 { return float32(mine(i) % 7) }
	case schedule.CollectiveAllgather:
		in, out = m.operand(rank, n), m.floats(size*n)
		call = func() error { return collective.Allgather(ctx, c, in, out, options...) }
		want = func(i int) float32 { return float32(of(i) + i%n%7) }
	case schedule.CollectiveReduceScatter:
		in, out = m.operand(rank, size*n), m.floats(n)
		call = func() error { return collective.ReduceScatter(ctx, c, in, out, sum, options...) }
		want = func(i int) float32 { return total(mine(i)) }
	case schedule.CollectiveAlltoall:
		in, out = m.operand(rank, size*n), m.floats(size*n)
		call = func() error { return collective.Alltoall(ctx, c, in, out, options...) }
		want = func(i int) float32 { return float32(of(i) + mine(i)%7) }
	}
	return work{call: call, rooted: rooted, check: func() error {
		for i, v := range out {
			if v != want(i) {
				return fmt.Errorf("%v: element %d is %v, not %v", kind, i, v, want(i))
			}
		}
		return nil
	}}
}

// pingPong is a round trip of ranks 0 and 1, while the others wait.
func pingPong(ctx context.Context, world *comm.Comm, out, in []byte) work {
	switch world.Rank() {
	case 0:
		return work{call: func() error {
			if err := world.Send(ctx, out, 1, 0); err != nil {
				return err
			}
			_, err := world.Recv(ctx, in, 1, 0)
			return err
		}}
	case 1:
		return work{call: func() error {
			if _, err := world.Recv(ctx, in, 0, 0); err != nil {
				return err
			}
			return world.Send(ctx, out, 0, 0)
		}}
	}
	return work{call: func() error { return nil }}
}
