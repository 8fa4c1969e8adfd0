package schedule_test

import (
	"fmt"
	"slices"

	"github.com/weft-go/weft/collective/schedule"
)

// A call is what the ranks give to a collective and what they must get.
type call struct {
	plans []schedule.Plan
	// input and output are the spaces of the ranks before the call: what is not written has
	// no contributions.
	input, output [][]value
	// want is what is in output behind the call. Units without contributions are not
	// looked at.
	want [][]value
	// ordered says that the order of the contributions counts.
	ordered bool
	// once says that each unit of output that is wanted, and was not there before, is
	// written once, and that no other is written.
	once bool
	// together says that no rank ends before all have begun.
	together bool
}

// A prover carries out plans and finds out whether what they do depends on the order in
// which puts arrive. Plans do not branch, so what must have happened before what is the
// same in every run: one that is carried out in any order, with clocks of what each step
// can know of the others, shows whether two steps can ever meet at a unit. If none can,
// then all orders give the same result, and this is it.
//
// It is used for one call after the other, and keeps its memory.
type prover struct {
	call
	ranks []rankState
	puts  []putState
	// index has the puts of each pair of ranks by their numbers, those of a pair from
	// where starts says to where it says for the next.
	index  []int32
	starts []int32
	units  []unit
	clocks []int32 // of all ranks and puts
	used   int
	err    error
}

type rankState struct {
	next  int     // the step
	clock []int32 // how many steps of each rank are known to be done
	space [3][]unit
	// settles are its steps of that kind, counted from 1.
	settles []int32
	depth   int // of the deepest put that was awaited
	units   int // that it has put
}

// unit is an element of a space: what it holds, and who may still be at it.
type unit struct {
	value
	input   bool // which is never written, so nobody keeps account of reads
	writes  int32
	written access
	first   access // that has read it since
	further []access
}

// access is a step that reads or writes, counted from 1, and 0 if there is none. That of a
// put ends when it is awaited by its peer, or settled.
type access struct{ put, rank, step int32 }

type putState struct {
	from, to, number int32
	clock            []int32
	awaited          int32 // the step of the peer, counted from 1
	settled          int32 // the step of this rank that settles it, counted from 1; may be still to come
	depth            int32
	dst              schedule.Span
}

// find is where the index has a put; nil if there is none in any plan.
func (p *prover) find(from, to, number int) *int32 {
	size := len(p.ranks)
	if from < 0 || from >= size || number < 0 {
		return nil
	}
	first, end := p.starts[from*size+to], p.starts[from*size+to+1]
	if number >= int(end-first) {
		return nil
	}
	return &p.index[int(first)+number]
}

// prove returns what the plans do, and an error if they break a rule of plans or do not
// give what is wanted.
func (p *prover) prove(c call) (schedule.Totals, error) {
	p.begin(c)
	for progress := true; progress; {
		progress = false
		for rank := range p.ranks {
			for p.ranks[rank].next < len(c.plans[rank].Steps) && p.step(rank) {
				progress = true
			}
			if p.err != nil {
				return schedule.Totals{}, p.err
			}
		}
	}
	for rank := range p.ranks {
		if next := p.ranks[rank].next; next < len(c.plans[rank].Steps) {
			return schedule.Totals{}, fmt.Errorf("rank %d waits for ever in step %d: %+v", rank, next, c.plans[rank].Steps[next])
		}
	}
	return p.total(), p.check()
}

func (p *prover) begin(c call) {
	size := len(c.plans)
	p.call, p.err = c, nil
	p.ranks = resize(p.ranks, size)
	p.puts = append(p.puts[:0], putState{}) // so that none has the index 0
	total := 0
	for rank, plan := range c.plans {
		total += len(c.input[rank]) + len(c.output[rank]) + plan.Scratch
	}
	p.units = resize(p.units, total)
	clocks := size
	p.starts = resize(p.starts, size*size+1)
	for rank, plan := range c.plans {
		for i := range plan.Steps {
			step := &plan.Steps[i]
			if (step.Action == schedule.Put || step.Action == schedule.Signal) && step.Peer >= 0 && step.Peer < size {
				clocks++
				p.starts[rank*size+step.Peer+1]++
			}
		}
	}
	for i := range size * size {
		p.starts[i+1] += p.starts[i]
	}
	p.index = resize(p.index, clocks-size)
	p.clocks, p.used = slices.Grow(p.clocks[:0], clocks*size)[:clocks*size], 0
	rest := p.units
	take := func(values []value, length int) []unit {
		all := rest[:length:length]
		rest = rest[length:]
		for i, v := range values {
			all[i].value = v
		}
		return all
	}
	for rank := range p.ranks {
		r := &p.ranks[rank]
		r.clock = p.clock()
		clear(r.clock)
		r.space[schedule.Input] = take(c.input[rank], len(c.input[rank]))
		for i := range r.space[schedule.Input] {
			r.space[schedule.Input][i].input = true
		}
		r.space[schedule.Output] = take(c.output[rank], len(c.output[rank]))
		r.space[schedule.Scratch] = take(nil, c.plans[rank].Scratch)
		for i, step := range c.plans[rank].Steps {
			if step.Action == schedule.Settle {
				r.settles = append(r.settles, int32(i+1))
			}
		}
	}
}

// resize is a slice of zeros of that length, in the same memory if that is enough.
func resize[T any](s []T, length int) []T {
	if cap(s) < length {
		return make([]T, length)
	}
	s = s[:length]
	clear(s)
	return s
}

func (p *prover) clock() []int32 {
	size := len(p.ranks)
	p.used += size
	return p.clocks[p.used-size : p.used : p.used]
}

// step does the next step of a rank. It returns false if that has to wait.
func (p *prover) step(rank int) bool {
	r := &p.ranks[rank]
	step := &p.plans[rank].Steps[r.next]
	now := access{rank: int32(rank), step: int32(r.next + 1)}
	switch step.Action {
	case schedule.Put, schedule.Signal:
		p.put(rank, step, now)
	case schedule.Await:
		i := p.find(step.Peer, rank, step.Number)
		if i == nil || *i == 0 {
			return false
		}
		put := &p.puts[*i]
		if put.awaited != 0 {
			p.fail(rank, "awaits a second time")
		}
		put.awaited = now.step
		if put.dst != step.Dst {
			p.fail(rank, "awaits another span")
		}
		for i, done := range put.clock {
			r.clock[i] = max(r.clock[i], done)
		}
		r.depth = max(r.depth, int(put.depth))
	case schedule.Reduce:
		dst, src, other := p.at(rank, rank, step.Dst), p.at(rank, rank, step.Src), p.at(rank, rank, step.Other)
		if len(dst) != len(src) || len(dst) != len(other) || len(dst) == 0 {
			p.fail(rank, "has spans of different lengths, or empty ones")
			return false
		}
		if overlaps(step.Dst, step.Src) && step.Dst != step.Src || overlaps(step.Dst, step.Other) && step.Dst != step.Other {
			p.fail(rank, "writes a part of what it reads")
		}
		for i := range dst {
			p.read(rank, &src[i], now)
			p.read(rank, &other[i], now)
			v := src[i].then(other[i].value)
			p.write(rank, &dst[i], now, v)
		}
	case schedule.Copy:
		dst, src := p.at(rank, rank, step.Dst), p.at(rank, rank, step.Src)
		if len(dst) != len(src) || len(dst) == 0 || overlaps(step.Dst, step.Src) {
			p.fail(rank, "has spans of different lengths, empty ones, or ones that overlap")
			return false
		}
		for i := range dst {
			p.read(rank, &src[i], now)
			p.write(rank, &dst[i], now, src[i].value)
		}
	case schedule.Settle:
	default:
		p.fail(rank, "is none")
	}
	r.next++
	r.clock[rank] = int32(r.next)
	return p.err == nil
}

func (p *prover) put(rank int, step *schedule.Step, now access) {
	r := &p.ranks[rank]
	if step.Peer == rank || step.Peer < 0 || step.Peer >= len(p.ranks) {
		p.fail(rank, "has no other rank as its peer")
		return
	}
	now.put = int32(len(p.puts))
	index := p.find(rank, step.Peer, step.Number)
	before := p.find(rank, step.Peer, step.Number-1)
	switch {
	case index == nil || before != nil && *before == 0:
		p.fail(rank, "leaves out a number")
		return
	case *index != 0:
		p.fail(rank, "has a number that was before")
	}
	*index = now.put
	put := putState{from: int32(rank), to: int32(step.Peer), number: int32(step.Number), depth: int32(r.depth + 1), dst: step.Dst}
	put.clock = p.clock()
	copy(put.clock, r.clock)
	// Whoever awaits it knows that this rank has come so far.
	put.clock[rank] = now.step
	if i, _ := slices.BinarySearch(r.settles, now.step); i < len(r.settles) {
		put.settled = r.settles[i]
	}
	p.puts = append(p.puts, put)
	if step.Action == schedule.Signal {
		if step.Src != (schedule.Span{}) || step.Dst != (schedule.Span{}) {
			p.fail(rank, "has data")
		}
		return
	}
	src, dst := p.at(rank, rank, step.Src), p.at(rank, step.Peer, step.Dst)
	if len(src) != len(dst) || len(src) == 0 {
		p.fail(rank, "has spans of different lengths, or empty ones")
		return
	}
	r.units += len(src)
	for i := range src {
		p.read(rank, &src[i], now)
		p.write(rank, &dst[i], now, src[i].value)
	}
}

// at is a span of a space of a rank, which a step of this rank or another uses.
func (p *prover) at(rank, owner int, span schedule.Span) []unit {
	space := p.ranks[owner].space[span.Space]
	if span.Offset < 0 || span.Length < 0 || span.Offset+span.Length > len(space) {
		p.fail(rank, fmt.Sprintf("uses %d units from %d on of the %v of rank %d, which has %d", span.Length, span.Offset, span.Space, owner, len(space)))
		return nil
	}
	return space[span.Offset:][:span.Length]
}

func overlaps(a, b schedule.Span) bool {
	return a.Space == b.Space && a.Offset < b.Offset+b.Length && b.Offset < a.Offset+a.Length
}

func (p *prover) read(rank int, u *unit, now access) {
	if u.count == 0 {
		p.fail(rank, "reads what was not written")
	}
	if !p.ended(u.written, rank) {
		p.fail(rank, fmt.Sprintf("reads what step %d of rank %d may still write", u.written.step-1, u.written.rank))
	}
	switch {
	case u.input || u.first == now:
	case u.first.step == 0:
		u.first = now
	default:
		u.further = append(u.further, now)
	}
}

func (p *prover) write(rank int, u *unit, now access, v value) {
	if u.input {
		p.fail(rank, "writes into an input")
	}
	if !p.ended(u.written, rank) {
		p.fail(rank, fmt.Sprintf("writes what step %d of rank %d may still write", u.written.step-1, u.written.rank))
	}
	p.notRead(rank, u.first, now)
	for _, read := range u.further {
		p.notRead(rank, read, now)
	}
	u.value, u.written, u.first, u.further = v, now, access{}, u.further[:0]
	u.writes++
}

func (p *prover) notRead(rank int, read, now access) {
	if read != now && !p.ended(read, rank) {
		p.fail(rank, fmt.Sprintf("writes what step %d of rank %d may still read", read.step-1, read.rank))
	}
}

// ended says whether an access is over whenever the rank comes to its next step.
func (p *prover) ended(a access, rank int) bool {
	clock := p.ranks[rank].clock
	if a.put == 0 {
		return clock[a.rank] >= a.step
	}
	put := &p.puts[a.put]
	return put.awaited != 0 && clock[put.to] >= put.awaited ||
		put.settled != 0 && clock[put.from] >= put.settled
}

func (p *prover) fail(rank int, what string) {
	if p.err == nil {
		next := p.ranks[rank].next
		p.err = fmt.Errorf("rank %d: step %d %s: %+v", rank, next, what, p.plans[rank].Steps[next])
	}
}

func (p *prover) total() schedule.Totals {
	var t schedule.Totals
	for i := range p.ranks {
		t.Units += p.ranks[i].units
		t.Most = max(t.Most, p.ranks[i].units)
	}
	for i := range p.puts {
		t.Rounds = max(t.Rounds, int(p.puts[i].depth))
	}
	return t
}

// check says whether all was awaited and is what is wanted.
func (p *prover) check() error {
	for _, put := range p.puts[1:] {
		if put.awaited == 0 {
			return fmt.Errorf("rank %d does not await number %d of rank %d", put.to, put.number, put.from)
		}
	}
	for rank := range p.ranks {
		for other, steps := range p.ranks[rank].clock {
			if p.together && other != rank && steps == 0 {
				return fmt.Errorf("rank %d may end before rank %d has begun", rank, other)
			}
		}
		output := p.ranks[rank].space[schedule.Output]
		if len(output) != len(p.want[rank]) {
			return fmt.Errorf("rank %d: the test has %d units and wants %d", rank, len(output), len(p.want[rank]))
		}
		for i, want := range p.want[rank] {
			got, before := &output[i], &p.output[rank][i]
			if want.count > 0 && !want.same(got.value, p.ordered) {
				return fmt.Errorf("rank %d: unit %d of the result has %d contributions, want %d, and the right ones in order", rank, i, got.count, want.count)
			}
			times := int32(1)
			if want.count == 0 || before.count > 0 {
				times = 0
			}
			if p.once && got.writes != times {
				return fmt.Errorf("rank %d: unit %d of the result was written %d times, want %d", rank, i, got.writes, times)
			}
		}
	}
	return nil
}
