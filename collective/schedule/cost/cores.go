package cost

import (
	"math"
	"math/rand/v2"
)

// core has the ranks of a node that take turns on it, which it keeps. One that has something to
// do does it until it has to wait; one that waits is looked at, and the next has its turn.
type core struct {
	ranks []int32
	turn  int // the rank whose turn it is, an index of ranks
	at    float64
	// idle: none of its ranks can go on before wakes, as far as is known, and all are looked at
	// in turn since at.
	idle  bool
	wakes float64
	// told is the key of the one event that counts: when it goes on may become earlier.
	told uint64
	// random is nil without Jitter. It is the same on every node, so that one stands for all.
	random *rand.Rand
}

// newCores are those of a node.
func newCores(n Network) []core {
	cores := make([]core, n.CoresPerNode)
	for i := range cores {
		if n.Jitter > 0 {
			cores[i].random = rand.New(rand.NewPCG(0, uint64(i)))
		}
	}
	return cores
}

// takes is what something takes that mostly takes so long.
func (c *core) takes(mostly, jitter float64) float64 {
	if c.random == nil {
		return mostly
	}
	return mostly * (1 + jitter*(2*c.random.Float64()-1))
}

// never is when a rank goes on that waits for what is not there yet.
var never = math.Inf(1)

// shared says whether the ranks of this one's node share cores.
func (r *run) shared(i int) bool { return r.nodes[i/r.RanksPerNode].cores != nil }

// place is which core of its node a rank is on.
func (n Network) place(rank int) int {
	in := rank % n.RanksPerNode
	if n.Placed != nil {
		return n.Placed[in]
	}
	return in % n.CoresPerNode
}

// coreOf is the core of a rank, and its number.
func (r *run) coreOf(i int) (*core, int) {
	node, in := i/r.RanksPerNode, r.place(i)
	return &r.nodes[node].cores[in], node*r.CoresPerNode + in
}

// turning is the event that a core goes on with the rank whose turn it is.
func (r *run) turning(number int, at float64) event {
	return event{at: at, core: true, rank: int32(number), order: 1<<60 | uint64(number%r.CoresPerNode)}
}

// turnAt has a core go on at a time, and not at the one that was said before.
func (r *run) turnAt(c *core, e event) {
	c.told++
	e.key = c.told
	r.queue.push(e)
}

// turn has a core go on.
func (r *run) turn(e event) {
	number, at := int(e.rank), e.at
	c := &r.nodes[number/r.CoresPerNode].cores[number%r.CoresPerNode]
	if e.key != c.told {
		return
	}
	if c.idle {
		c.idle = false
		if r.Look > 0 {
			// All have been looked at in turn meanwhile.
			looks := max(math.Ceil((at-c.at)/float64(r.Look)), 0)
			c.at += looks * float64(r.Look)
			c.turn = (c.turn + int(math.Mod(looks, float64(len(c.ranks))))) % len(c.ranks)
		} else {
			c.at = at
		}
	}
	if r.rest(c, number) {
		return
	}
	for range c.ranks {
		i := int(c.ranks[c.turn])
		me := &r.ranks[i]
		if me.goes <= c.at {
			if !r.resume(i, c.at) {
				// Something else comes first.
				c.at = me.now
				r.turnAt(c, r.turning(number, c.at))
				return
			}
			c.at = max(c.at, me.now)
		}
		if me.next < len(me.steps) {
			c.at += c.takes(float64(r.Look), r.Jitter)
		}
		c.turn = (c.turn + 1) % len(c.ranks)
		if e := r.turning(number, c.at); r.queue.earlier(&e) {
			r.turnAt(c, e)
			return
		}
	}
	if !r.rest(c, number) {
		r.turnAt(c, r.turning(number, c.at))
	}
}

// rest has a core look at its ranks until one of them can go on, and says no if one can now. What it looks
// at meanwhile is no event: they could wait for very long.
func (r *run) rest(c *core, number int) bool {
	c.wakes = never
	for _, i := range c.ranks {
		c.wakes = min(c.wakes, r.ranks[i].goes)
	}
	if c.wakes <= c.at {
		return false
	}
	c.idle = true
	r.wake(c, number)
	return true
}

// wake has an idle core go on when one of its ranks can.
func (r *run) wake(c *core, number int) {
	c.wakes = max(c.wakes, c.at)
	if c.wakes < never {
		r.turnAt(c, r.turning(number, c.wakes))
	}
}

// ready is told that a rank that waited can go on at a time.
func (r *run) ready(i int, at float64) {
	r.ranks[i].waits = 0
	if !r.shared(i) {
		r.queue.push(r.going(i, max(at, r.ranks[i].now)))
		return
	}
	r.ranks[i].goes = max(at, r.ranks[i].now)
	if c, number := r.coreOf(i); c.idle && r.ranks[i].goes < c.wakes {
		c.wakes = r.ranks[i].goes
		r.wake(c, number)
	}
}
