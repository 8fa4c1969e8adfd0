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
	there  map[uint64]bool
	owed   []int // puts of each rank that are not there
}

type flight struct {
	from int
	step *schedule.Step
}

func putKey(from, to, number int) uint64 {
	return uint64(from)<<40 | uint64(to)<<20 | uint64(number)
}

// deliver carries out the plans in an order that the seed chooses, and returns an error if
// that does not give what is wanted.
func deliver(c call, seed uint64) error {
	size := len(c.plans)
	d := &delivery{
		call: c, random: rand.New(rand.NewPCG(seed, 1)),
		space: make([][3][]value, size), next: make([]int, size), queued: make([]bool, size),
		there: map[uint64]bool{}, owed: make([]int, size),
	}
	for rank, plan := range c.plans {
		d.space[rank] = [3][]value{
			append([]value(nil), c.input[rank]...),
			append([]value(nil), c.output[rank]...),
			make([]value, plan.Scratch),
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
	for rank, plan := range c.plans {
		if d.next[rank] < len(plan.Steps) {
			return fmt.Errorf("rank %d waits for ever in step %d", rank, d.next[rank])
		}
		for i, want := range c.want[rank] {
			if want.count > 0 && !want.same(d.space[rank][schedule.Output][i], c.ordered) {
				return fmt.Errorf("rank %d: unit %d of the result is wrong", rank, i)
			}
		}
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
		if step.Action == schedule.Await && !d.there[putKey(step.Peer, rank, step.Number)] ||
			step.Action == schedule.Settle && d.owed[rank] > 0 {
			break
		}
		d.next[rank]++
		switch step.Action {
		case schedule.Put, schedule.Signal:
			d.owed[rank]++
			d.flying = append(d.flying, flight{rank, step})
		case schedule.Reduce:
			dst, src, other := d.at(rank, step.Dst), d.at(rank, step.Src), d.at(rank, step.Other)
			for i := range dst {
				dst[i] = src[i].then(other[i])
			}
		case schedule.Copy:
			copy(d.at(rank, step.Dst), d.at(rank, step.Src))
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
	}
	d.there[putKey(f.from, f.step.Peer, f.step.Number)] = true
	d.owed[f.from]--
	d.wake(f.from)
	d.wake(f.step.Peer)
}

func (d *delivery) at(rank int, span schedule.Span) []value {
	return d.space[rank][span.Space][span.Offset:][:span.Length]
}
