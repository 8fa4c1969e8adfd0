package schedule_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/weft-go/weft/collective/schedule"
)

// A delivery carries out plans as a network might: ranks go on in any order, and a put is
// there at any time after it was begun, long after later ones perhaps. It reads its source
// when it is there, so that one that was changed too early is seen. It knows nothing of what
// must have happened before what: it sees what happens in one run.
type delivery struct {
	call
	random *rand.Rand
	space  [][3][]value
	next   []int // step of each rank
	able   []int // ranks that may be able to do a step
	queued []bool
	flying []flight
	there  map[uint64]int // puts that nobody has awaited yet, and their depths
	owed   []int          // puts of each rank that are not there
	depth  []int          // of the deepest put that each rank has awaited
	units  []int          // that each rank has put
	writes [][]int32      // of each unit of the outputs, if that counts
	begun  int            // ranks that have done a step
	rounds int
	err    error
}

type flight struct {
	from  int
	step  *schedule.Step
	depth int
}

func putKey(from, to, number int) uint64 {
	return uint64(from)<<40 | uint64(to)<<20 | uint64(number)
}

// deliver carries out the plans in an order that the seed chooses, and returns what they have
// done, and an error if that does not give what is wanted.
func deliver(c call, seed uint64) (schedule.Totals, error) {
	size := len(c.plans)
	d := &delivery{
		call: c, random: rand.New(rand.NewPCG(seed, 1)),
		space: make([][3][]value, size), next: make([]int, size), queued: make([]bool, size),
		there: map[uint64]int{}, owed: make([]int, size), depth: make([]int, size), units: make([]int, size),
		writes: make([][]int32, size),
	}
	for rank, plan := range c.plans {
		d.space[rank] = [3][]value{
			append([]value(nil), c.input[rank]...),
			append([]value(nil), c.output[rank]...),
			make([]value, plan.Scratch),
		}
		if c.once {
			d.writes[rank] = make([]int32, len(c.output[rank]))
		}
		d.wake(rank)
	}
	for len(d.able)+len(d.flying) > 0 {
		if i := d.random.IntN(len(d.able) + len(d.flying)); i < len(d.able) {
			d.run(i)
		} else {
			d.land(i - len(d.able))
		}
	}
	return d.totals(), d.check()
}

func (d *delivery) totals() schedule.Totals {
	t := schedule.Totals{Rounds: d.rounds}
	for _, units := range d.units {
		t.Units += units
		t.Most = max(t.Most, units)
	}
	return t
}

func (d *delivery) check() error {
	if d.err != nil {
		return d.err
	}
	for rank, plan := range d.plans {
		if d.next[rank] < len(plan.Steps) {
			return fmt.Errorf("rank %d waits for ever in step %d", rank, d.next[rank])
		}
		for i, want := range d.want[rank] {
			if want.count > 0 && !want.same(d.space[rank][schedule.Output][i], d.ordered) {
				return fmt.Errorf("rank %d: unit %d of the result is wrong", rank, i)
			}
			times := int32(1)
			if want.count == 0 || d.output[rank][i].count > 0 {
				times = 0
			}
			if d.once && d.writes[rank][i] != times {
				return fmt.Errorf("rank %d: unit %d of the result was written %d times, want %d", rank, i, d.writes[rank][i], times)
			}
		}
	}
	for key := range d.there {
		return fmt.Errorf("rank %d does not await number %d of rank %d", key>>20&(1<<20-1), key&(1<<20-1), key>>40)
	}
	return nil
}

func (d *delivery) wake(rank int) {
	if !d.queued[rank] {
		d.queued[rank] = true
		d.able = append(d.able, rank)
	}
}

// run has a rank do some steps, until it has to wait or another may go on.
func (d *delivery) run(i int) {
	rank := d.able[i]
	for d.next[rank] < len(d.plans[rank].Steps) {
		step := &d.plans[rank].Steps[d.next[rank]]
		if step.Action == schedule.Await {
			key := putKey(step.Peer, rank, step.Number)
			depth, there := d.there[key]
			if !there {
				break
			}
			delete(d.there, key)
			d.depth[rank] = max(d.depth[rank], depth)
		}
		if step.Action == schedule.Settle && d.owed[rank] > 0 {
			break
		}
		if d.next[rank] == 0 {
			d.begun++
		}
		d.next[rank]++
		if d.together && d.next[rank] == len(d.plans[rank].Steps) && d.begun < len(d.plans) && d.err == nil {
			d.err = fmt.Errorf("rank %d ended when no more than %d of %d ranks has begun", rank, d.begun, len(d.plans))
		}
		switch step.Action {
		case schedule.Put, schedule.Signal:
			d.owed[rank]++
			d.units[rank] += step.Src.Length
			d.rounds = max(d.rounds, d.depth[rank]+1)
			d.flying = append(d.flying, flight{rank, step, d.depth[rank] + 1})
		case schedule.Reduce:
			dst, src, other := d.at(rank, step.Dst), d.at(rank, step.Src), d.at(rank, step.Other)
			for i := range dst {
				dst[i] = src[i].then(other[i])
			}
			d.wrote(rank, step.Dst)
		case schedule.Copy:
			copy(d.at(rank, step.Dst), d.at(rank, step.Src))
			d.wrote(rank, step.Dst)
		}
		if d.random.IntN(3) == 0 {
			return
		}
	}
	d.queued[rank] = false
	d.able[i] = d.able[len(d.able)-1]
	d.able = d.able[:len(d.able)-1]
}

// land has one of the puts on their way be there.
func (d *delivery) land(i int) {
	f := d.flying[i]
	d.flying[i] = d.flying[len(d.flying)-1]
	d.flying = d.flying[:len(d.flying)-1]
	if f.step.Action == schedule.Put {
		copy(d.at(f.step.Peer, f.step.Dst), d.at(f.from, f.step.Src))
		d.wrote(f.step.Peer, f.step.Dst)
	}
	d.there[putKey(f.from, f.step.Peer, f.step.Number)] = f.depth
	d.owed[f.from]--
	d.wake(f.from)
	d.wake(f.step.Peer)
}

// wrote counts writes to a span of a rank.
func (d *delivery) wrote(rank int, span schedule.Span) {
	if d.once && span.Space == schedule.Output {
		for i := range d.writes[rank][span.Offset:][:span.Length] {
			d.writes[rank][span.Offset+i]++
		}
	}
}

func (d *delivery) at(rank int, span schedule.Span) []value {
	return d.space[rank][span.Space][span.Offset:][:span.Length]
}
