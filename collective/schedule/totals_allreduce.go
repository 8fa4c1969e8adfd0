package schedule

func (f formula) allreduce() Totals {
	n, length := f.size, f.length
	switch f.Algorithm {
	case ReduceBcast:
		return f.reduceBcast()
	case RecursiveDoubling:
		return f.doubling()
	case Ring:
		t := Totals{Rounds: 2 * (n - 1), Units: 2 * (n - 1) * length}
		for rank := range n {
			t.Most = max(t.Most, 2*length-f.count(rank)-f.count((rank+1)%n))
		}
		return t
	case Direct:
		return Totals{Rounds: 1, Units: n * (n - 1) * length, Most: (n - 1) * length}
	case Pairwise:
		return Totals{Rounds: 2, Units: 2 * (n - 1) * length, Most: length + (n-2)*f.most()}
	}
	if !f.Commutative {
		return f.foldedHalves()
	}
	t := Totals{Units: 2 * (n - 1) * length}
	for rank := range n {
		t.Most = max(t.Most, length-f.count(rank)+f.gatherUnits(rank, -1))
	}
	depths := make(depths, n)
	depths.scatter(part{0, n, 0})
	depths.gather(part{0, n, 0}, false)
	t.Rounds = depths.most()
	return t
}

func (f formula) reduceBcast() Totals {
	t := Totals{Rounds: 2 * f.height(), Units: 2 * (f.size - 1) * f.length}
	if !f.Commutative {
		t.Rounds = f.halvingHeight() + f.height()
	}
	// Of those that put up, the first one below the root has the most children.
	for v := range 2 {
		first, end := heap{f.size, 0, f.fanout()}.children(v)
		t.Most = max(t.Most, (v+end-first)*f.length)
	}
	return t
}

// doubling is log2 of the ranks that take part. Where others are folded in, their data are
// one round behind; but they reach a rank that gives a result back over fewer rounds,
// unless more than half are folded in: then there is one whose number is the opposite of
// such a rank's.
func (f formula) doubling() Totals {
	d := fold(0, f.size)
	t := Totals{
		Rounds: d.rounds,
		Units:  (d.size*d.rounds + 2*d.pairs) * f.length,
		Most:   d.rounds * f.length,
	}
	if d.pairs > 0 {
		t.Rounds++
		t.Most += f.length
	}
	if 2*d.pairs > d.size {
		t.Rounds++
	}
	return t
}

func (f formula) foldedHalves() Totals {
	d := fold(0, f.size)
	t := Totals{
		Rounds: 2 * d.rounds,
		Units:  2 * (d.size - 1 + d.pairs) * f.length,
	}
	if d.pairs > 0 {
		t.Rounds += 2
	}
	for rank := range d.size {
		// It gives away all but what it keeps in the end, and gives back what it kept
		// in each round.
		units, kept := f.length, f.length
		for round := range d.rounds {
			kept = (kept + rank>>round&1) / 2
			units += kept
		}
		units -= kept
		if rank < d.pairs {
			units += f.length
		}
		t.Most = max(t.Most, units)
	}
	t.Most = max(t.Most, min(d.pairs, 1)*f.length)
	return t
}

// depths are how long the chain of puts is behind which each rank has got.
type depths []int

// hold has the holder of a part give each half that it does not hold to the holder of
// that.
func (d depths) hold(p part, depth int) {
	d[p.holder] = depth
	for p.size() > 1 {
		mine, other := p.halve()
		if other.holder == p.holder {
			mine, other = other, mine
		}
		d.hold(other, depth+1)
		p = mine
	}
}

// gather has the ranks of the halves exchange what they have behind those of the halves of
// the halves. If it is rooted, a holder has what is held already.
func (d depths) gather(p part, rooted bool) {
	if p.size() == 1 {
		return
	}
	lower, upper := p.halve()
	d.gather(lower, rooted)
	d.gather(upper, rooted)
	before := append(depths(nil), d[p.low:p.end]...)
	for rank := p.low; rank < p.end; rank++ {
		from := upper.partnerOf(lower, rank)
		if upper.has(rank) {
			from = lower.partnerOf(upper, rank)
		}
		if !rooted || rank != p.holder {
			d[rank] = max(d[rank], before[from-p.low]+1)
		}
	}
}

// scatter has the ranks of the halves exchange what they have before those of the halves of
// the halves.
func (d depths) scatter(p part) {
	if p.size() == 1 {
		return
	}
	lower, upper := p.halve()
	before := append(depths(nil), d[p.low:p.end]...)
	for rank := p.low; rank < p.end; rank++ {
		to := upper.partnerOf(lower, rank)
		if upper.has(rank) {
			to = lower.partnerOf(upper, rank)
		}
		d[to] = max(d[to], before[rank-p.low]+1)
	}
	d.scatter(lower)
	d.scatter(upper)
}

func (d depths) most() int {
	most := 0
	for _, depth := range d {
		most = max(most, depth)
	}
	return most
}
