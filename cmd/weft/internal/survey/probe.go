package survey

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/job"
)

// short is a message of which the length does not matter.
const short = 8

// probeSizes are those of the survey, behind the short one.
func probeSizes(sizes []int) []int {
	return append([]int{short}, slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n == short })...)
}

// worksheet is what a job measures, in this order, and where that is noted.
type worksheet struct {
	// arena: the data of all are in one.
	arena bool
	cases []job.Case
	into  []*Series
}

func (w *worksheet) add(series *Series, c job.Case) {
	c.Arena = w.arena
	w.into, w.cases = append(w.into, series), append(w.cases, c)
}

// note takes the samples of the cases.
func (w *worksheet) note(samples []bench.Sample) {
	for i, series := range w.into {
		*series = append(*series, micros(samples[i]))
	}
}

// exchange is how ranks find out what it is like to put to each other.
type exchange struct {
	kind schedule.Collective
	// ways are by what algorithms ranks that share cores do: all at once, and from one to the next.
	ways [2]schedule.Algorithm
}

// What is combined where it was put is neither copied to the caller nor moved by the kernel.
var (
	gathered = exchange{schedule.CollectiveAllgather, [...]schedule.Algorithm{schedule.Direct, schedule.Bruck}}
	combined = exchange{schedule.CollectiveReduceScatter, [...]schedule.Algorithm{schedule.Pairwise, schedule.Ring}}
)

func exchangeFor(combines bool) exchange {
	if combines {
		return combined
	}
	return gathered
}

// combines says whether ranks that are to find out how long a call takes combine what they put to each other.
func combines(collective string, bytes int) bool {
	return bytes > short && (collective == schedule.CollectiveAllreduce.String() || collective == schedule.CollectiveReduceScatter.String())
}

// addNetwork has two ranks of so many find out what the network is like.
func (w *worksheet) addNetwork(network []Probe, ranks int, simulate, combines bool) {
	add := func(series *Series, c job.Case) {
		c.Pair = ranks > 2
		w.add(series, c)
	}
	for i := range network {
		one := &network[i]
		add(&one.Message, job.Case{Work: job.PingPong, Bytes: one.Bytes})
		add(&one.Combine, job.Case{Work: job.Combine, Bytes: one.Bytes})
		add(&one.Copy, job.Case{Work: job.Copy, Bytes: one.Bytes})
		if !simulate {
			continue
		}
		e := exchangeFor(combines && one.Bytes != short)
		add(&one.Exchange, job.Case{Work: e.kind.String(), Algorithm: e.ways[0], Bytes: one.Bytes})
		add(&one.Put, job.Case{Work: schedule.CollectiveBcast.String(), Algorithm: schedule.Tree, Bytes: one.Bytes})
		add(&one.Reduce, job.Case{Work: schedule.CollectiveReduce.String(), Algorithm: schedule.Tree, Bytes: one.Bytes})
		if one.Bytes == short {
			// With an option, as the calls that are predicted have one: it takes its time.
			add(&one.Barrier, job.Case{Work: schedule.CollectiveBarrier.String(), Algorithm: schedule.Dissemination})
			add(&one.Empty, job.Case{Work: job.Empty, Algorithm: schedule.Tree})
			add(&one.Stream, job.Case{Work: job.Stream, Algorithm: schedule.Tree, Bytes: one.Bytes})
		}
	}
}

// addCrowd has more ranks than cores find out what it is to share cores and caches.
func (w *worksheet) addCrowd(crowd *Crowd) {
	w.add(&crowd.Barrier, job.Case{Work: schedule.CollectiveBarrier.String(), Algorithm: schedule.Dissemination})
	w.add(&crowd.Short, job.Case{Work: schedule.CollectiveAllgather.String(), Algorithm: schedule.Bruck, Bytes: short})
	w.add(&crowd.Direct, job.Case{Work: schedule.CollectiveAllgather.String(), Algorithm: schedule.Direct, Bytes: short})
	if e := crowd.Exchange; e != nil {
		x := exchangeFor(e.Combines)
		w.add(&e.AtOnce, job.Case{Work: x.kind.String(), Algorithm: x.ways[0], Bytes: e.Bytes})
		w.add(&e.InTurn, job.Case{Work: x.kind.String(), Algorithm: x.ways[1], Bytes: e.Bytes})
	}
	if t := crowd.Tree; t != nil {
		w.add(&t.Took, job.Case{Work: t.Collective, Algorithm: schedule.Tree, Bytes: t.Bytes})
	}
}

// probe has two ranks find out what the network is like, in a job of their own.
func (s *survey) probe(ctx context.Context) error {
	var w worksheet
	w.addNetwork(s.report.Network, 2, false, false)
	samples, err := s.ranks(2, len(w.cases)).Measure(ctx, w.cases)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("two ranks on %s: %w", s.Provider, err)
	}
	w.note(samples)
	return nil
}

// newNetwork has a probe of each size.
func newNetwork(sizes []int) (network []Probe) {
	for _, bytes := range probeSizes(sizes) {
		network = append(network, Probe{Bytes: bytes})
	}
	return network
}

// surround has the ranks of each result find out themselves, in the job of its calls, what the
// simulator is to know. A machine is slower at times, and processes differ by where they run
// and by what memory they have; so calls are predicted from what is true of their own.
func (s *survey) surround() {
	for _, r := range s.report.Results {
		r.around = &Surroundings{Collective: r.Collective, Ranks: r.Ranks, Bytes: r.Bytes, Combines: combines(r.Collective, r.Bytes), Network: newNetwork([]int{s.pairBytes(r.Collective, r.Ranks, r.Bytes)})}
		if r.Ranks > runtime.NumCPU() {
			r.around.Crowd = s.newCrowd(r.Collective, r.Ranks, r.Bytes)
		}
		s.report.Surroundings = append(s.report.Surroundings, r.around)
	}
}

// newCrowd has an exchange of as much memory in all as a call of so many bytes has: how much slower
// ranks are together depends on how much of that is in caches. On shm, where the ranks move the data, that they
// have cores in turn says all of it for what each core has in its own cache; elsewhere others need the cores, too.
func (s *survey) newCrowd(collective string, ranks, bytes int) *Crowd {
	crowd := &Crowd{}
	if bytes > short && (s.Provider != shm || bytes >= shared) {
		crowd.Exchange = &Exchange{Combines: combines(collective, bytes), Bytes: s.alike(exchangeBytes(collective, ranks, bytes, ranks), ranks, collective, ranks, bytes)}
		switch collective {
		case schedule.CollectiveBcast.String():
			crowd.Tree = &Tree{Collective: collective, Bytes: bytes}
		case schedule.CollectiveReduce.String(), schedule.CollectiveAllreduce.String():
			crowd.Tree = &Tree{Collective: schedule.CollectiveReduce.String(), Bytes: bytes}
		}
	}
	return crowd
}

// alongTree says whether a call is predicted from a Bcast or a Reduce of all ranks: a Bcast, or a call in which all of the
// data go along a tree. Some ranks have more to do than others, and there is less memory than in an exchange that has as much in all.
func alongTree(collective, algorithm string) bool {
	switch collective {
	case schedule.CollectiveBcast.String():
		return true
	case schedule.CollectiveReduce.String():
		return algorithm == schedule.Tree.String() || algorithm == schedule.Binomial.String()
	}
	return algorithm == schedule.ReduceBcast.String()
}

// Data of so many bytes are in caches that cores share, or in none.
const (
	shared   = 32 << 10
	uncached = 16 << 20
)

// exchangeBytes are those of an exchange of some ranks that has as much memory in all as a call has.
func exchangeBytes(collective string, ranks, bytes, exchanging int) int {
	exchange := job.Case{Work: schedule.CollectiveAllgather.String(), Bytes: bytes}
	part := float64(memoryOf(collective, ranks, bytes)) / float64(exchange.Memory(exchanging))
	return max(int(float64(bytes)*part)/element*element, 2*short)
}

// alike has an exchange of some ranks be no longer, or no shorter, than one that goes the way that a call goes: on shm
// the kernel moves long results.
func (s *survey) alike(exchange, exchanging int, collective string, ranks, bytes int) int {
	if s.Provider != shm {
		return exchange
	}
	result := bytes
	switch collective {
	case schedule.CollectiveReduce.String(), schedule.CollectiveAllreduce.String(), schedule.CollectiveReduceScatter.String():
		// What is combined is put elsewhere, but is no less for that.
		return min(exchange, cost.MostMapped/exchanging/element*element)
	case schedule.CollectiveGather.String(), schedule.CollectiveAllgather.String(), schedule.CollectiveAlltoall.String():
		result *= ranks
	}
	least := s.directMoved()
	if result < least {
		return min(exchange, (least-1)/exchanging/element*element)
	}
	// What is longer than any is moved alike, and in no cache.
	return min(max(exchange, (least-1)/exchanging/element*element+element), cost.MostMapped/exchanging/element*element+element)
}

// directMoved is how long a result is on shm that the kernel puts where the caller wants it.
func (s *survey) directMoved() int {
	if s.quickKernel {
		return cost.DirectMapped
	}
	return cost.MostMapped + 1
}

// memoryOf is what a call uses in all: what its ranks have, but where one of them uses what all have.
func memoryOf(collective string, ranks, bytes int) int {
	switch collective {
	case schedule.CollectiveGather.String(), schedule.CollectiveScatter.String():
		return 2 * 2 * ranks * bytes
	case schedule.CollectiveAlltoall.String():
		// Ranks give as much as they get, which is what is put to them, too. In an exchange they give little.
		exchange := job.Case{Work: schedule.CollectiveAllgather.String(), Bytes: bytes}
		return exchange.Memory(ranks) / (2*ranks + 1) * 3 * ranks
	}
	return job.Case{Work: collective, Bytes: bytes}.Memory(ranks)
}

// pairBytes are those with which two ranks find out what the network is like for a call: on shm, where
// ranks are as fast as the caches they share, so many that these two have as much memory as all ranks of
// the call, up to what is in no cache; and no less than the call, unless that is, or goes another way.
func (s *survey) pairBytes(collective string, ranks, bytes int) int {
	if s.Provider != shm || bytes <= short {
		return max(bytes, short)
	}
	exchange := exchangeBytes(collective, ranks, bytes, 2)
	if bytes < uncached {
		exchange = max(bytes, min(exchange, uncached))
	}
	return s.alike(exchange, 2, collective, ranks, bytes)
}

// probed is what was found out with so many bytes.
func probed(network []Probe, bytes int) *Probe {
	for i := range network {
		if p := &network[i]; p.Bytes == bytes {
			return p
		}
	}
	return &network[0]
}

// bounds are the least that a call takes, by the alpha-beta-gamma model and what was found
// out in each round.
func (s *survey) bounds(r *Result) (Series, error) {
	kind, err := schedule.ParseCollective(r.Collective)
	if err != nil {
		return nil, err
	}
	call, err := callOf(kind, schedule.Default, r.Ranks, r.Bytes, s.Provider == shm)
	if err != nil {
		return nil, err
	}
	first, p := s.report.Network[0], probed(s.report.Network, r.Bytes)
	bounds := make(Series, len(r.Weft))
	for i := range bounds {
		alpha := first.Message[i]
		b, err := cost.LowerBound(call, element, duration(alpha), rate(p.Bytes, p.Message[i]-alpha), rate(p.Bytes, p.Combine[i]))
		if err != nil {
			return nil, err
		}
		bounds[i] = b.Sum().Seconds() * 1e6
	}
	return bounds, nil
}

// rate is in bytes a second, and 0, which takes no time, where too little was measured.
func rate(bytes int, micros float64) float64 {
	if micros <= 0 || bytes <= short {
		return 0
	}
	return float64(bytes) / micros * 1e6
}

func duration(micros float64) time.Duration {
	return time.Duration(max(micros, 0) * float64(time.Microsecond))
}

// round is what was found out in one of them.
func (a *Surroundings) round(i int) *Surroundings {
	one := &Surroundings{Collective: a.Collective, Ranks: a.Ranks, Bytes: a.Bytes, Combines: a.Combines}
	for _, p := range a.Network {
		one.Network = append(one.Network, Probe{
			Bytes: p.Bytes, Message: p.Message.round(i), Combine: p.Combine.round(i), Copy: p.Copy.round(i),
			Exchange: p.Exchange.round(i), Put: p.Put.round(i), Reduce: p.Reduce.round(i), Barrier: p.Barrier.round(i), Empty: p.Empty.round(i), Stream: p.Stream.round(i),
		})
	}
	if a.Crowd == nil {
		return one
	}
	one.Crowd = &Crowd{Barrier: a.Crowd.Barrier.round(i), Short: a.Crowd.Short.round(i), Direct: a.Crowd.Direct.round(i)}
	if e := a.Crowd.Exchange; e != nil {
		one.Crowd.Exchange = &Exchange{Combines: e.Combines, Bytes: e.Bytes, AtOnce: e.AtOnce.round(i), InTurn: e.InTurn.round(i)}
	}
	if t := a.Crowd.Tree; t != nil {
		one.Crowd.Tree = &Tree{Collective: t.Collective, Bytes: t.Bytes, Took: t.Took.round(i)}
	}
	return one
}
