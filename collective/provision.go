package collective

import (
	"fmt"
	"math"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/cachedcopy"
)

// provision is a call that is done by the provider's own collectives (fi_collective.h), which
// are one more algorithm, schedule.Provider.
type provision struct {
	kind   schedule.Collective
	root   int
	length int // bytes that one rank gives to another
	uneven bool

	of        *offload
	operation fabric.AtomicOp
	values    fabric.DataType
	buf       []byte
	result    []byte
}

// providerKinds are libfabric's names.
var providerKinds = map[schedule.Collective]fabric.CollectiveKind{
	schedule.CollectiveBarrier:       fabric.Barrier,
	schedule.CollectiveBcast:         fabric.Broadcast,
	schedule.CollectiveReduce:        fabric.Reduce,
	schedule.CollectiveAllreduce:     fabric.AllReduce,
	schedule.CollectiveGather:        fabric.Gather,
	schedule.CollectiveScatter:       fabric.Scatter,
	schedule.CollectiveAllgather:     fabric.AllGather,
	schedule.CollectiveReduceScatter: fabric.ReduceScatter,
	schedule.CollectiveAlltoall:      fabric.AllToAll,
}

// providerOperations are the operators that libfabric has, by their names here.
var providerOperations = map[string]fabric.AtomicOp{
	"sum": fabric.Sum, "product": fabric.Product, "min": fabric.Min, "max": fabric.Max,
	"and": fabric.BitAnd, "or": fabric.BitOr, "xor": fabric.BitXor,
}

// providerTypes are the types of elements that it combines.
var providerTypes = map[string]fabric.DataType{
	"int8": fabric.Int8, "int16": fabric.Int16, "int32": fabric.Int32, "int64": fabric.Int64, "int": fabric.Int64,
	"uint8": fabric.Uint8, "uint16": fabric.Uint16, "uint32": fabric.Uint32, "uint64": fabric.Uint64, "uint": fabric.Uint64,
	"float32": fabric.Float32, "float64": fabric.Float64, "complex64": fabric.Complex64, "complex128": fabric.Complex128,
}

// combining is what libfabric combines by, and with.
func combining(op operator.Erased) (fabric.AtomicOp, fabric.DataType, error) {
	operation, known := providerOperations[op.Name()]
	values, has := providerTypes[op.TypeName()]
	switch {
	case !op.Builtin(), !known, !has, values.Size() != op.ElementSize():
	case op.TypeName()[0] == 'f' && (operation == fabric.Min || operation == fabric.Max):
		// In C, what comes of a NaN, or of two zeros, depends on who is first.
	default:
		return operation, values, nil
	}
	return 0, 0, fmt.Errorf("it does not combine as %v", op)
}

// provide says whether the provider does a call, or by which algorithm it is done otherwise. That
// is an error only if the call itself asks for the provider.
func (g *group) provide(p provision, op operator.Erased, options []Option) (*provision, schedule.Algorithm, error) {
	err := g.offered(&p, op)
	if err == nil {
		// Of a single rank, or of nothing, there is nothing for the provider to do.
		if g.size == 1 || p.length == 0 && p.kind != schedule.CollectiveBarrier {
			return nil, schedule.Default, nil
		}
		if err = g.meet(p.of); err == nil {
			return &p, schedule.Provider, nil
		}
	}
	if adjusted(schedule.Options{}, options).Algorithm == schedule.Provider {
		return nil, 0, &ArgumentError{
			"algorithm", schedule.Provider.String(),
			fmt.Sprintf("another one, since %s does no such %v of its own here: %v", g.comm.Provider(), p.kind, err),
		}
	}
	// Of an operator that is not commutative, options has taken another one.
	if a := g.table.choose(p.kind, p.length, true); a != schedule.Provider {
		return nil, a, nil
	}
	return nil, schedule.Default, nil
}

// offered asks the provider whether it does a call.
func (g *group) offered(p *provision, op operator.Erased) (err error) {
	switch {
	case p.uneven:
		return fmt.Errorf("it has none with counts")
	case p.length > math.MaxInt32/g.size:
		return fmt.Errorf("it has them of up to %d bytes for each of %d ranks, not %d", math.MaxInt32/g.size, g.size, p.length)
	}
	p.values = fabric.Uint8
	if combines(p.kind) {
		if p.operation, p.values, err = combining(op); err != nil {
			return err
		}
	}
	if p.of, err = g.offloaded(); err != nil {
		return err
	}
	message := p.length
	switch p.kind {
	case schedule.CollectiveScatter:
		message = p.length * g.size
	case schedule.CollectiveBcast:
		message = p.padded(g.size)
	}
	limits, err := p.of.domain.CollectiveLimits(providerKinds[p.kind], p.operation, p.values)
	switch count := p.length / p.values.Size(); {
	case err != nil:
		return err
	case limits.MaxMembers > 0 && g.size > limits.MaxMembers:
		return fmt.Errorf("it has them for up to %d ranks, not %d", limits.MaxMembers, g.size)
	case limits.MaxMessage > 0 && message > limits.MaxMessage:
		return fmt.Errorf("it has them with messages of up to %d bytes, not %d", limits.MaxMessage, message)
	case limits.MaxValues > 0 && count > limits.MaxValues:
		return fmt.Errorf("it has them of up to %d values, not %d", limits.MaxValues, count)
	}
	return nil
}

// take copies what the caller gives: nothing of the caller's is with the provider, so that a
// call can be given up.
func (p *provision) take(input []byte, rank, size int) {
	parts, results := 1, 1
	atRoot := func(n int) int {
		if rank == p.root {
			return n
		}
		return 0
	}
	switch p.kind {
	case schedule.CollectiveBarrier:
		return
	case schedule.CollectiveBcast:
		p.buf = make([]byte, p.padded(size))
		p.result = p.buf[:p.length]
		cachedcopy.Copy(p.buf, input)
		return
	case schedule.CollectiveReduce:
		results = atRoot(1)
	case schedule.CollectiveGather:
		results = atRoot(size)
	case schedule.CollectiveScatter:
		parts = atRoot(size)
	case schedule.CollectiveAllgather:
		results = size
	case schedule.CollectiveReduceScatter:
		parts = size
	case schedule.CollectiveAlltoall:
		parts, results = size, size
	}
	p.buf, p.result = make([]byte, parts*p.length), make([]byte, results*p.length)
	cachedcopy.Copy(p.buf, input)
}

// padded is how long a Bcast is for libfabric, which cuts it into a part for each rank.
func (p *provision) padded(size int) int { return (p.length + size - 1) / size * size }

// post begins it, as libfabric has it.
func (p *provision) post(g *fabric.Group, context uint64) (err error) {
	c := fabric.Collective{Buf: p.buf, Result: p.result, Type: p.values, Operation: p.operation, Root: p.root, Context: context}
	switch p.kind {
	case schedule.CollectiveBarrier:
		_, err = g.Barrier(context, 0)
	case schedule.CollectiveBcast:
		c.Result = nil
		_, err = g.Broadcast(c)
	case schedule.CollectiveReduce:
		_, err = g.Reduce(c)
	case schedule.CollectiveAllreduce:
		_, err = g.AllReduce(c)
	case schedule.CollectiveGather:
		_, err = g.Gather(c)
	case schedule.CollectiveScatter:
		_, err = g.Scatter(c)
	case schedule.CollectiveAllgather:
		_, err = g.AllGather(c)
	case schedule.CollectiveReduceScatter:
		_, err = g.ReduceScatter(c)
	case schedule.CollectiveAlltoall:
		_, err = g.AllToAll(c)
	}
	return err
}

// offload has the provider do a call. The other ranks are to be done with it, too, before any
// of them closes.
func (g *group) offload(p progress, c *call) {
	c.planned = &planned{collective: c.shape.Collective}
	g.calls[c.number%slots], g.owners[c.number%slots] = c, c
	if err := g.missing(c.number); err != nil {
		g.fail(p, err)
		return
	}
	for rank := range g.members {
		if rank != g.rank {
			g.members[rank].put = c.number + 1
		}
	}
	c.provision.take(c.input, g.rank, g.size)
	c.provision.of.queue <- c
}

// missing is why some rank does not take part in a call: the provider would wait for it for
// ever.
func (g *group) missing(number uint64) error {
	for rank := range g.members {
		if rank != g.rank && g.members[rank].released <= number {
			if err := g.gone(rank, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// provided takes in the end of a call that the provider has done.
func (g *group) provided(p progress, c *call, err error) {
	switch {
	case g.failure != nil:
	case err != nil:
		g.fail(p, err)
	default:
		c.spaces[schedule.Output] = c.provision.result
		g.finish(p, c)
	}
}
