package collective

import (
	"fmt"
	"slices"
	"sync"

	"github.com/weft-go/weft/collective/schedule"
)

// options are those for a call of so many bytes, as the program has adjusted them.
func (g *group) options(kind schedule.Collective, bytes, element int, commutative bool, adjust []Option) (schedule.Options, error) {
	o := schedule.Options{Fanout: g.config.Fanout, Commutative: commutative, Algorithm: g.config.Algorithms[kind]}
	if o.Algorithm == schedule.Default {
		o.Algorithm = g.table.choose(kind, bytes, commutative)
	}
	if o.Algorithm != schedule.Default && !commutative && !schedule.KeepsOrder(kind, o.Algorithm) {
		o.Algorithm = schedule.Default
	}
	chunk := g.chunk(kind, o.Algorithm, bytes, element)
	o.Chunk = chunk
	if len(adjust) == 0 {
		return o, nil
	}
	if slices.ContainsFunc(adjust, func(f Option) bool { return f == nil }) {
		return o, &ArgumentError{"option", "nil", "a function, as WithAlgorithm returns one, or none at all"}
	}
	if o = adjusted(o, adjust); o.Chunk == chunk {
		o.Chunk = g.chunk(kind, o.Algorithm, bytes, element)
	}
	// These follow from what the call is given, and not from how it is to be done.
	o.InPlace, o.Commutative = false, commutative
	if err := checkAlgorithm(kind, o.Algorithm); err != nil {
		return o, err
	}
	if o.Algorithm != schedule.Default && !commutative && !schedule.KeepsOrder(kind, o.Algorithm) {
		return o, &ArgumentError{"algorithm", o.Algorithm.String(), "another one, since the operator is not commutative"}
	}
	return o, nil
}

// chunk is in pieces of how many elements what a rank puts is cut, or 0. That has the next rank begin
// earlier, along trees, and in rings over a network, and a rank that is put to directly copy what has
// come. Within a host, where who puts does the work, rings
// and exchanges have all ranks at work in any case, and each piece is one more thing to be told of.
func (g *group) chunk(kind schedule.Collective, algorithm schedule.Algorithm, bytes, element int) int {
	chunk, pieces := max(g.config.Chunk/element, 1), mostPieces
	switch kind {
	case schedule.CollectiveBcast, schedule.CollectiveReduce:
	case schedule.CollectiveGather, schedule.CollectiveScatter:
		// What others have put is copied to the caller within a host only.
		if !g.sameHost || algorithm != schedule.Direct {
			return 0
		}
	default:
		if g.sameHost && algorithm != schedule.ReduceBcast {
			return 0
		}
	}
	if bytes/element <= chunk {
		return 0
	}
	switch kind {
	case schedule.CollectiveAllgather, schedule.CollectiveReduceScatter, schedule.CollectiveGather, schedule.CollectiveScatter:
		// The blocks of all ranks are cut.
		pieces = max(min(pieces, schedule.MaxPieces/max(g.size, 1)), 1)
	}
	if g.sameHost && bytes >= leastPast && bytes*g.size > mostCached {
		chunk = max(chunk, (pastPiece-1)/element+1)
	}
	return max(chunk, (bytes/element-1)/pieces+1)
}

// adjustable are for an Option, which is a function of the program: what it is given is allocated.
var adjustable = sync.Pool{New: func() any { return &schedule.Options{} }}

func adjusted(o schedule.Options, adjust []Option) schedule.Options {
	to := adjustable.Get().(*schedule.Options)
	*to = o
	for _, f := range adjust {
		f(to)
	}
	o = *to
	adjustable.Put(to)
	return o
}

// Choice is a line of a table of algorithms: calls of the collective are done by the
// algorithm where there are at least so many ranks, and at least so many bytes. The bytes are
// those of what one rank gives to another: all of a Bcast, Reduce or Allreduce, and
// otherwise the block of a rank. Of the lines that fit, the last one counts; where operands
// must not change places, the last one that keeps their order.
type Choice struct {
	Collective   schedule.Collective
	Ranks, Bytes int
	Algorithm    schedule.Algorithm
}

// String is the line as [Variable] has it.
func (c Choice) String() string {
	return fmt.Sprintf("%v/%d/%d=%v", c.Collective, c.Ranks, c.Bytes, c.Algorithm)
}

// check says what is wrong with a line.
func (c Choice) check() error {
	if c.Ranks < 0 || c.Bytes < 0 {
		return &ArgumentError{"choice", c.String(), "at least 0 ranks and 0 bytes"}
	}
	return checkAlgorithm(c.Collective, c.Algorithm)
}

// long is where what goes over links begins to cost more than how often it goes.
const long = 64<<10 + 1

// few is up to how many ranks it takes longer to wait for one more round than to put to, or to hear
// from, all of them at once.
const few = 8

// many is how many ranks it takes until the number of rounds counts for more than where the
// data goes.
const many = 64

// usual is the table where nobody has another. weft bench collective --tune prints the one
// that is right for a machine in this form.
var usual = []Choice{
	{schedule.CollectiveBcast, 5, long, schedule.ScatterAllgather},
	{schedule.CollectiveAllreduce, 0, long, schedule.Rabenseifner},
	{schedule.CollectiveAllreduce, 3, long, schedule.Ring},
	{schedule.CollectiveGather, 0, 0, schedule.Direct},
	{schedule.CollectiveGather, few + 1, 0, schedule.Binomial},
	{schedule.CollectiveGather, 0, long, schedule.Direct},
	{schedule.CollectiveScatter, 0, 0, schedule.Direct},
	{schedule.CollectiveScatter, few + 1, 0, schedule.Binomial},
	{schedule.CollectiveScatter, 0, long, schedule.Direct},
	{schedule.CollectiveAllgather, 3, 0, schedule.Direct},
	{schedule.CollectiveAllgather, 3, 16 << 10, schedule.Bruck},
	{schedule.CollectiveAllgather, few/2 + 1, 0, schedule.Bruck},
	{schedule.CollectiveAllgather, 0, long, schedule.Ring},
	{schedule.CollectiveReduceScatter, 3, long, schedule.Ring},

	// These are not measured: they follow from weft bench collective --simulate efa, by whose
	// network of 8 ranks per node each is the best from here on, or nearly, to 16,384 ranks.
	{schedule.CollectiveBcast, mostWordSource + 1, long, schedule.Tree},
	{schedule.CollectiveBcast, mostWordSource + 1, 3 << 20, schedule.ScatterAllgather},
	{schedule.CollectiveReduce, many, 16 << 10, schedule.Binomial},
	{schedule.CollectiveReduce, many, 640 << 10, schedule.Tree},
	{schedule.CollectiveAllreduce, many, long, schedule.Rabenseifner},
	{schedule.CollectiveAllgather, many, 0, schedule.RecursiveDoubling},
	{schedule.CollectiveReduceScatter, many, 0, schedule.RecursiveHalving},
	{schedule.CollectiveAlltoall, many, 0, schedule.Bruck},
	{schedule.CollectiveAlltoall, many, 3 << 10, schedule.Pairwise},
}

// table has the lines of each collective that fit a number of ranks.
type table [][]Choice

// newTable takes the usual lines, and then those of the configuration.
func newTable(config Config, size int) table {
	t := make(table, len(schedule.Collectives())+1)
	for _, lines := range [][]Choice{usual, config.Choices} {
		for _, c := range lines {
			if c.Ranks <= size {
				t[c.Collective] = append(t[c.Collective], c)
			}
		}
	}
	return t
}

// choose is the algorithm for a call of so many bytes where nobody says which.
func (t table) choose(kind schedule.Collective, bytes int, commutative bool) schedule.Algorithm {
	lines := t[kind]
	for i := len(lines) - 1; i >= 0; i-- {
		c := &lines[i]
		if c.Bytes <= bytes && (commutative || c.Algorithm == schedule.Default || schedule.KeepsOrder(kind, c.Algorithm)) {
			return c.Algorithm
		}
	}
	return schedule.Default
}

// Options are those with which a call on so many ranks is planned, in which one rank gives so
// many bytes to another, in elements of a size, where the communicator has this configuration
// and the call has no option of its own. sameHost is for shm. Errors: *ConfigError, *ArgumentError.
func (c Config) Options(kind schedule.Collective, size, bytes, element int, commutative, sameHost bool) (schedule.Options, error) {
	var o schedule.Options
	if err := checkAlgorithm(kind, schedule.Default); err != nil {
		return o, err
	}
	c, err := c.withDefaults()
	if err != nil {
		return o, err
	}
	g := group{size: size, sameHost: sameHost, config: c, table: newTable(c, size)}
	o, err = g.options(kind, bytes, max(element, 1), commutative, nil)
	if err != nil {
		return o, err
	}
	for _, a := range schedule.Algorithms(kind) {
		if o.Algorithm == schedule.Default && (commutative || schedule.KeepsOrder(kind, a)) {
			o.Algorithm = a
		}
	}
	return o, nil
}
