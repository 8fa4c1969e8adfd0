package collective

import (
	"context"
	"fmt"
	"slices"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// trial is a call as all ranks know it.
type trial struct {
	kind  kind
	root  int
	bytes int // of the longest buffer of a rank, about
	seed  uint64
	// inPlace: ranks that may do so give the same slice twice, or a part of the one for the
	// result.
	inPlace   bool
	algorithm schedule.Algorithm
	// larder is where this rank's data are to be; nil for Go's memory.
	larder *larder
}

func (t trial) String() string {
	return fmt.Sprintf("%s with root %d, about %d bytes, by %v, in place: %v, in an arena here: %v", t.kind.name, t.root, t.bytes, t.algorithm, t.inPlace, t.larder != nil)
}

// attempt is a rank's part in a trial: both ways to make the call, and what must have come
// of it.
type attempt struct {
	run   func(ctx context.Context) error
	start func() (*Request, error)
	check func() error
}

// kind is a function of this package.
type kind struct {
	name       string
	collective schedule.Collective
	uneven     bool
}

// kinds are all functions that have an I-form too.
var kinds = []kind{
	{"barrier", schedule.CollectiveBarrier, false},
	{"bcast", schedule.CollectiveBcast, false},
	{"reduce", schedule.CollectiveReduce, false},
	{"allreduce", schedule.CollectiveAllreduce, false},
	{"gather", schedule.CollectiveGather, false},
	{"scatter", schedule.CollectiveScatter, false},
	{"allgather", schedule.CollectiveAllgather, false},
	{"reduce-scatter", schedule.CollectiveReduceScatter, false},
	{"alltoall", schedule.CollectiveAlltoall, false},
	{"gatherv", schedule.CollectiveGather, true},
	{"scatterv", schedule.CollectiveScatter, true},
	{"allgatherv", schedule.CollectiveAllgather, true},
	{"reduce-scatterv", schedule.CollectiveReduceScatter, true},
	{"alltoallv", schedule.CollectiveAlltoall, true},
}

// roots are those that a kind has with so many ranks.
func (k kind) roots(size int) int {
	if rooted(k.collective) {
		return size
	}
	return 1
}

// algorithms are those that a subject may be done by.
func (k kind) algorithms(s subject) (all []schedule.Algorithm) {
	if k.name == "alltoallv" {
		return []schedule.Algorithm{schedule.Pairwise}
	}
	for _, a := range schedule.Algorithms(k.collective) {
		if !combines(k.collective) || s.commutative() || schedule.KeepsOrder(k.collective, a) {
			all = append(all, a)
		}
	}
	return all
}

// part is a number of elements that a source gives to a rank in an uneven trial, that are n
// on the average. Of some it is 0.
func (t trial) part(n, source, rank int) int {
	return int(scramble(t.seed+uint64(source)<<20+uint64(rank))>>8%5) * n / 2
}

// blocks lays out parts, behind one another or in reverse with room between.
func (t trial) blocks(counts []int) (b Blocks, length int) {
	if t.seed&4 == 0 {
		return strewn(counts)
	}
	for _, n := range counts {
		length += n
	}
	return Blocks{Counts: counts}, length
}

// parts are what all sources give to a rank, or with from what a source gives to all.
func (t trial) parts(n, size int, of func(i int) (source, rank int)) []int {
	counts := make([]int, size)
	for i := range counts {
		source, rank := of(i)
		counts[i] = t.part(n, source, rank)
	}
	return counts
}

// unused is a slice that a call does not use, and leaves as it is; of some calls, and of large
// ones, there is none.
func (o over[T]) unused(t trial, n int) []T {
	if t.seed&8 == 0 || t.bytes > 1<<20 {
		return nil
	}
	return o.of(t, nowhere, n)
}

// nowhere is a source of what must stay as it was.
const nowhere = 1 << 20

// laid fills blocks with what sources have, and what is between them with junk.
func (o over[T]) laid(t trial, b Blocks, length int, source func(i int) int) []T {
	s := o.of(t, nowhere, length)
	for i, part := range spansOf(b) {
		copy(s[part.first:part.end], o.of(t, source(i), part.end-part.first))
	}
	return s
}

// checkLaid is check of such blocks, and what is between them.
func (o over[T]) checkLaid(t trial, got []T, b Blocks, source func(i int) int) error {
	parts := spansOf(b)
	for i, part := range parts {
		n := part.end - part.first
		if err := o.check(fmt.Sprintf("block %d", i), got[part.first:part.end], o.tile(t, source(i), n), 0); err != nil {
			return err
		}
	}
	slices.SortFunc(parts, func(a, b span) int { return a.first - b.first })
	junk, next := o.tile(t, nowhere, len(got)), 0
	for _, part := range append(parts, span{len(got), len(got)}) {
		if part.first > next {
			if err := o.check("between the blocks", got[next:part.first], junk, next); err != nil {
				return err
			}
		}
		next = max(next, part.end)
	}
	return nil
}

// even are blocks of one length.
func even(size, n int) Blocks {
	counts := make([]int, size)
	for i := range counts {
		counts[i] = n
	}
	return Blocks{Counts: counts}
}

func itself(i int) int { return i }

// attempt implements subject. What a rank gives is its source by number; what is for each
// rank of a rank, size sources.
func (o over[T]) attempt(c *comm.Comm, t trial) attempt {
	var option []Option
	if t.algorithm != schedule.Default {
		option = append(option, WithAlgorithm(t.algorithm))
	}
	switch t.kind.collective {
	case schedule.CollectiveBarrier:
		return attempt{
			func(ctx context.Context) error { return Barrier(ctx, c, option...) },
			func() (*Request, error) { return Ibarrier(c, option...) },
			func() error { return nil },
		}
	case schedule.CollectiveBcast:
		return o.bcast(c, t, option)
	case schedule.CollectiveReduce, schedule.CollectiveAllreduce:
		return o.reduce(c, t, option)
	case schedule.CollectiveReduceScatter:
		return o.reduceScatter(c, t, option)
	case schedule.CollectiveGather, schedule.CollectiveAllgather:
		return o.gather(c, t, option)
	case schedule.CollectiveScatter:
		return o.scatter(c, t, option)
	case schedule.CollectiveAlltoall:
		if t.kind.uneven {
			return o.alltoallv(c, t, option)
		}
		return o.alltoall(c, t, option)
	}
	panic(t.kind.name)
}

func (o over[T]) bcast(c *comm.Comm, t trial, option []Option) attempt {
	n := t.bytes / sizeOf[T]()
	source := t.root
	if c.Rank() != t.root {
		source = nowhere
	}
	buf := o.of(t, source, n)
	return attempt{
		func(ctx context.Context) error { return Bcast(ctx, c, buf, t.root, option...) },
		func() (*Request, error) { return Ibcast(c, buf, t.root, option...) },
		func() error { return o.check("buf", buf, o.tile(t, t.root, n), 0) },
	}
}

func (o over[T]) reduce(c *comm.Comm, t trial, option []Option) attempt {
	n := t.bytes / sizeOf[T]()
	send := o.of(t, c.Rank(), n)
	has := t.kind.collective == schedule.CollectiveAllreduce || c.Rank() == t.root
	inPlace := has && t.inPlace
	recv := send
	switch {
	case !has:
		recv = o.unused(t, n)
	case !inPlace:
		recv = o.of(t, nowhere, n)
	}
	a := attempt{
		run:   func(ctx context.Context) error { return Reduce(ctx, c, send, recv, o.op, t.root, option...) },
		start: func() (*Request, error) { return Ireduce(c, send, recv, o.op, t.root, option...) },
		check: func() error {
			if !inPlace {
				if err := o.check("send", send, o.tile(t, c.Rank(), n), 0); err != nil {
					return err
				}
			}
			if !has {
				return o.check("recv of no root", recv, o.tile(t, nowhere, n), 0)
			}
			want, err := o.folded(t, c.Size(), n)
			if err != nil {
				return err
			}
			return o.check("recv", recv, want, 0)
		},
	}
	if t.kind.collective == schedule.CollectiveAllreduce {
		a.run = func(ctx context.Context) error { return Allreduce(ctx, c, send, recv, o.op, option...) }
		a.start = func() (*Request, error) { return Iallreduce(c, send, recv, o.op, option...) }
	}
	return a
}

func (o over[T]) reduceScatter(c *comm.Comm, t trial, option []Option) attempt {
	n := t.bytes / c.Size() / sizeOf[T]()
	counts := even(c.Size(), n).Counts
	if t.kind.uneven {
		counts = t.parts(n, c.Size(), func(i int) (source, rank int) { return 0, i })
	}
	places := spansOf(Blocks{Counts: counts})
	mine, total := places[c.Rank()], places[c.Size()-1].end
	send, recv := o.of(t, c.Rank(), total), o.of(t, nowhere, mine.end-mine.first)
	a := attempt{
		run:   func(ctx context.Context) error { return ReduceScatter(ctx, c, send, recv, o.op, option...) },
		start: func() (*Request, error) { return IreduceScatter(c, send, recv, o.op, option...) },
		check: func() error {
			if err := o.check("send", send, o.tile(t, c.Rank(), total), 0); err != nil {
				return err
			}
			want, err := o.folded(t, c.Size(), total)
			if err != nil {
				return err
			}
			return o.check("recv", recv, want, mine.first)
		},
	}
	if t.kind.uneven {
		a.run = func(ctx context.Context) error { return ReduceScatterv(ctx, c, send, recv, counts, o.op, option...) }
		a.start = func() (*Request, error) { return IreduceScatterv(c, send, recv, counts, o.op, option...) }
	}
	return a
}

func (o over[T]) gather(c *comm.Comm, t trial, option []Option) attempt {
	n := t.bytes / c.Size() / sizeOf[T]()
	blocks, length := even(c.Size(), n), c.Size()*n
	if t.kind.uneven {
		blocks, length = t.blocks(t.parts(n, c.Size(), func(i int) (source, rank int) { return i, 0 }))
	}
	all := t.kind.collective == schedule.CollectiveAllgather
	has := all || c.Rank() == t.root
	inPlace := has && t.inPlace
	var send, recv []T
	if has {
		recv = o.of(t, nowhere, length)
	} else {
		recv = o.unused(t, length)
	}
	if inPlace {
		mine := spansOf(blocks)[c.Rank()]
		send = recv[mine.first:mine.end]
		o.fill(send, o.tile(t, c.Rank(), len(send)))
	} else {
		send = o.of(t, c.Rank(), blocks.Counts[c.Rank()])
	}
	a := attempt{check: func() error {
		if err := o.check("send", send, o.tile(t, c.Rank(), len(send)), 0); err != nil {
			return err
		}
		if !has {
			return o.check("recv of no root", recv, o.tile(t, nowhere, length), 0)
		}
		return o.checkLaid(t, recv, blocks, itself)
	}}
	switch {
	case t.kind.uneven && all:
		a.run = func(ctx context.Context) error { return Allgatherv(ctx, c, send, recv, blocks, option...) }
		a.start = func() (*Request, error) { return Iallgatherv(c, send, recv, blocks, option...) }
	case t.kind.uneven:
		a.run = func(ctx context.Context) error { return Gatherv(ctx, c, send, recv, blocks, t.root, option...) }
		a.start = func() (*Request, error) { return Igatherv(c, send, recv, blocks, t.root, option...) }
	case all:
		a.run = func(ctx context.Context) error { return Allgather(ctx, c, send, recv, option...) }
		a.start = func() (*Request, error) { return Iallgather(c, send, recv, option...) }
	default:
		a.run = func(ctx context.Context) error { return Gather(ctx, c, send, recv, t.root, option...) }
		a.start = func() (*Request, error) { return Igather(c, send, recv, t.root, option...) }
	}
	return a
}

func (o over[T]) scatter(c *comm.Comm, t trial, option []Option) attempt {
	n := t.bytes / c.Size() / sizeOf[T]()
	blocks, length := even(c.Size(), n), c.Size()*n
	if t.kind.uneven {
		blocks, length = t.blocks(t.parts(n, c.Size(), func(i int) (source, rank int) { return 0, i }))
	}
	var send []T
	if c.Rank() == t.root {
		send = o.laid(t, blocks, length, itself)
	}
	recv := o.of(t, nowhere, blocks.Counts[c.Rank()])
	a := attempt{
		run:   func(ctx context.Context) error { return Scatter(ctx, c, send, recv, t.root, option...) },
		start: func() (*Request, error) { return Iscatter(c, send, recv, t.root, option...) },
		check: func() error {
			if c.Rank() == t.root {
				if err := o.checkLaid(t, send, blocks, itself); err != nil {
					return fmt.Errorf("send: %w", err)
				}
			}
			return o.check("recv", recv, o.tile(t, c.Rank(), len(recv)), 0)
		},
	}
	if t.kind.uneven {
		a.run = func(ctx context.Context) error { return Scatterv(ctx, c, send, blocks, recv, t.root, option...) }
		a.start = func() (*Request, error) { return Iscatterv(c, send, blocks, recv, t.root, option...) }
	}
	return a
}

func (o over[T]) alltoall(c *comm.Comm, t trial, option []Option) attempt {
	n := t.bytes / c.Size() / sizeOf[T]()
	blocks, size := even(c.Size(), n), c.Size()
	to := func(i int) int { return c.Rank()*size + i }
	from := func(i int) int { return i*size + c.Rank() }
	send := o.laid(t, blocks, size*n, to)
	recv := send
	if !t.inPlace {
		recv = o.of(t, nowhere, len(send))
	}
	return attempt{
		func(ctx context.Context) error { return Alltoall(ctx, c, send, recv, option...) },
		func() (*Request, error) { return Ialltoall(c, send, recv, option...) },
		func() error {
			if !t.inPlace {
				if err := o.checkLaid(t, send, blocks, to); err != nil {
					return fmt.Errorf("send: %w", err)
				}
			}
			return o.checkLaid(t, recv, blocks, from)
		},
	}
}

func (o over[T]) alltoallv(c *comm.Comm, t trial, option []Option) attempt {
	n, size := t.bytes/c.Size()/sizeOf[T](), c.Size()
	to := func(i int) int { return c.Rank()*size + i }
	from := func(i int) int { return i*size + c.Rank() }
	sent, most := t.blocks(t.parts(n, size, func(i int) (source, rank int) { return c.Rank(), i }))
	received, length := t.blocks(t.parts(n, size, func(i int) (source, rank int) { return i, c.Rank() }))
	send, recv := o.laid(t, sent, most, to), o.of(t, nowhere, length)
	return attempt{
		func(ctx context.Context) error { return Alltoallv(ctx, c, send, sent, recv, received, option...) },
		func() (*Request, error) { return Ialltoallv(c, send, sent, recv, received, option...) },
		func() error {
			if err := o.checkLaid(t, send, sent, to); err != nil {
				return fmt.Errorf("send: %w", err)
			}
			return o.checkLaid(t, recv, received, from)
		},
	}
}
