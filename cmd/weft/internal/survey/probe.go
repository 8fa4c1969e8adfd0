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

// probing is what is measured to find out about the network, and where that is noted.
type probing struct {
	// arena: calls have their data in one, as those do that are predicted.
	arena bool
	cases []job.Case
	into  []*Series
}

func (p *probing) add(series *Series, c job.Case) {
	c.Arena = p.arena
	p.into, p.cases = append(p.into, series), append(p.cases, c)
}

// note takes the samples of the cases.
func (p *probing) note(samples []bench.Sample) {
	for i, series := range p.into {
		*series = append(*series, micros(samples[i]))
	}
}

// addNetwork has two ranks of so many find out what the network is like.
func (p *probing) addNetwork(network []Probe, ranks int, simulate bool) {
	add := func(series *Series, c job.Case) {
		c.Pair = ranks > 2
		p.add(series, c)
	}
	for i := range network {
		one := &network[i]
		add(&one.Message, job.Case{Work: job.PingPong, Bytes: one.Bytes})
		add(&one.Combine, job.Case{Work: job.Combine, Bytes: one.Bytes})
		add(&one.Copy, job.Case{Work: job.Copy, Bytes: one.Bytes})
		if !simulate {
			continue
		}
		add(&one.Exchange, job.Case{Work: schedule.CollectiveAllgather.String(), Algorithm: schedule.Direct, Bytes: one.Bytes})
		add(&one.Put, job.Case{Work: schedule.CollectiveBcast.String(), Algorithm: schedule.Tree, Bytes: one.Bytes})
		if one.Bytes == short {
			add(&one.Empty, job.Case{Work: job.Empty})
			add(&one.Stream, job.Case{Work: job.Stream, Bytes: one.Bytes})
		}
	}
}

// addCrowd has more ranks than cores find out what it is to share cores and caches.
func (p *probing) addCrowd(crowd *Crowd) {
	p.add(&crowd.Barrier, job.Case{Work: schedule.CollectiveBarrier.String()})
	p.add(&crowd.Short, job.Case{Work: schedule.CollectiveAllgather.String(), Algorithm: schedule.Bruck, Bytes: short})
	for i := range crowd.Exchanges {
		e := &crowd.Exchanges[i]
		p.add(&e.Direct, job.Case{Work: schedule.CollectiveAllgather.String(), Algorithm: crowdExchanges[0], Bytes: e.Bytes})
		p.add(&e.Bruck, job.Case{Work: schedule.CollectiveAllgather.String(), Algorithm: crowdExchanges[1], Bytes: e.Bytes})
	}
}

// crowdExchanges are the algorithms of an Exchange, as its fields.
var crowdExchanges = []schedule.Algorithm{schedule.Direct, schedule.Bruck}

// probe has two ranks find out what the network is like, in a job of their own.
func (s *survey) probe(ctx context.Context) error {
	var p probing
	p.addNetwork(s.report.Network, 2, false)
	samples, err := s.ranks(2, len(p.cases)).Measure(ctx, p.cases)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("two ranks on %s: %w", s.Provider, err)
	}
	p.note(samples)
	return nil
}

// newNetwork has a probe of each size.
func (s *survey) newNetwork() (network []Probe) {
	for _, bytes := range probeSizes(s.Sizes) {
		network = append(network, Probe{Bytes: bytes})
	}
	return network
}

// surround has the ranks of each group find out themselves, in the job of their calls, what the
// simulator is to know. A machine is slower at times, and processes differ by where they run
// and by what memory they have; so calls are predicted from what is true of their own.
func (s *survey) surround(groups [][]*Result) {
	for _, group := range groups {
		around := &Surroundings{Collective: group[0].Collective, Ranks: group[0].Ranks, Network: s.newNetwork()}
		if around.Ranks > runtime.NumCPU() {
			around.Crowd = s.newCrowd(around.Ranks)
		}
		s.report.Surroundings = append(s.report.Surroundings, around)
		for _, r := range group {
			r.around = around
		}
	}
}

// newCrowd has an exchange of each size for which there is memory.
func (s *survey) newCrowd(ranks int) *Crowd {
	crowd := &Crowd{}
	for _, bytes := range s.Sizes {
		exchange := job.Case{Work: schedule.CollectiveAllgather.String(), Bytes: bytes}
		if bytes > short && (s.Memory == 0 || exchange.Memory(ranks) <= s.Memory) {
			crowd.Exchanges = append(crowd.Exchanges, Exchange{Bytes: bytes})
		}
	}
	return crowd
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
	call, err := callOf(kind, r.Ranks, r.Bytes)
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
	one := &Surroundings{Collective: a.Collective, Ranks: a.Ranks}
	for _, p := range a.Network {
		one.Network = append(one.Network, Probe{
			Bytes: p.Bytes, Message: p.Message.round(i), Combine: p.Combine.round(i), Copy: p.Copy.round(i),
			Exchange: p.Exchange.round(i), Put: p.Put.round(i), Empty: p.Empty.round(i), Stream: p.Stream.round(i),
		})
	}
	if a.Crowd == nil {
		return one
	}
	one.Crowd = &Crowd{Barrier: a.Crowd.Barrier.round(i), Short: a.Crowd.Short.round(i)}
	for _, e := range a.Crowd.Exchanges {
		one.Crowd.Exchanges = append(one.Crowd.Exchanges, Exchange{Bytes: e.Bytes, Direct: e.Direct.round(i), Bruck: e.Bruck.round(i)})
	}
	return one
}
