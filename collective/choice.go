package collective

import "github.com/weft-go/weft/collective/schedule"

// options are those for a call of so many bytes, as the program has adjusted them.
func (g *group) options(kind schedule.Collective, bytes, element int, commutative bool, adjust []Option) (schedule.Options, error) {
	o := schedule.Options{Fanout: g.config.Fanout, Commutative: commutative, Algorithm: g.config.Algorithms[kind]}
	if o.Algorithm == schedule.Default {
		o.Algorithm = choose(kind, g.size, bytes, commutative)
	}
	if o.Algorithm != schedule.Default && !commutative && !schedule.KeepsOrder(kind, o.Algorithm) {
		o.Algorithm = schedule.Default
	}
	if chunk := max(g.config.Chunk/element, 1); bytes/element > chunk {
		o.Chunk = max(chunk, (bytes/element-1)/mostPieces+1)
	}
	if len(adjust) == 0 {
		return o, nil
	}
	o = adjusted(o, adjust)
	if err := checkAlgorithm(kind, o.Algorithm); err != nil {
		return o, err
	}
	if o.Algorithm != schedule.Default && !commutative && !schedule.KeepsOrder(kind, o.Algorithm) {
		return o, &ArgumentError{"algorithm", o.Algorithm.String(), "another one, since the operator is not commutative"}
	}
	return o, nil
}

// adjusted is apart from options because what adjust is given is allocated.
func adjusted(o schedule.Options, adjust []Option) schedule.Options {
	for _, f := range adjust {
		f(&o)
	}
	return o
}

// choose is the algorithm for a call of so many bytes where nobody says which.
func choose(kind schedule.Collective, size, bytes int, commutative bool) schedule.Algorithm {
	const long = 64 << 10
	switch {
	case bytes <= long:
	case kind == schedule.CollectiveAllreduce && commutative && size > 2:
		return schedule.Ring
	case kind == schedule.CollectiveAllreduce:
		return schedule.Rabenseifner
	case kind == schedule.CollectiveBcast && size > 4:
		return schedule.ScatterAllgather
	case kind == schedule.CollectiveGather || kind == schedule.CollectiveScatter:
		return schedule.Direct
	case kind == schedule.CollectiveAllgather && size > 2:
		return schedule.Ring
	case kind == schedule.CollectiveReduceScatter && commutative && size > 2:
		return schedule.Ring
	}
	return schedule.Default
}
