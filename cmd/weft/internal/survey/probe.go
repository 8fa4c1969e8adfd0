package survey

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
	"github.com/weft-go/weft/internal/bench/job"
)

// short is a message of which the length does not matter.
const short = 8

// probeSizes are those of the survey, behind the short one.
func probeSizes(sizes []int) []int {
	return append([]int{short}, slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n == short })...)
}

// probe has two ranks find out what the network is like, once, and more of them what it is to
// share cores.
func (s *survey) probe(ctx context.Context) error {
	var cases []job.Case
	var into []*Series
	add := func(series *Series, c job.Case) {
		into, cases = append(into, series), append(cases, c)
	}
	for i := range s.report.Network {
		p := &s.report.Network[i]
		add(&p.Message, job.Case{Work: job.PingPong, Bytes: p.Bytes})
		add(&p.Combine, job.Case{Work: job.Combine, Bytes: p.Bytes})
		add(&p.Copy, job.Case{Work: job.Copy, Bytes: p.Bytes})
		if !s.Simulate {
			continue
		}
		add(&p.Exchange, job.Case{Work: schedule.CollectiveAllgather.String(), Algorithm: schedule.Direct, Bytes: p.Bytes})
		if p.Bytes == short {
			add(&p.Empty, job.Case{Work: job.Empty})
			add(&p.Stream, job.Case{Work: job.Stream, Bytes: p.Bytes})
		}
	}
	samples, err := s.ranks(2, len(cases)).Measure(ctx, cases)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("two ranks on %s: %w", s.Provider, err)
	}
	for i := range into {
		*into[i] = append(*into[i], micros(samples[i]))
	}
	for i := range s.report.Crowds {
		if err := s.probeCrowd(ctx, &s.report.Crowds[i]); err != nil {
			return err
		}
	}
	return nil
}

// addCrowds has as many ranks looked at as are measured and share cores.
func (s *survey) addCrowds() {
	for _, ranks := range slices.Compact(slices.Sorted(slices.Values(s.Ranks))) {
		if ranks <= runtime.NumCPU() {
			continue
		}
		crowd := Crowd{Ranks: ranks}
		for _, bytes := range s.Sizes {
			exchange := job.Case{Work: schedule.CollectiveAllgather.String(), Bytes: bytes}
			if bytes > short && (s.Memory == 0 || exchange.Memory(ranks) <= s.Memory) {
				crowd.Exchanges = append(crowd.Exchanges, Exchange{Bytes: bytes})
			}
		}
		s.report.Crowds = append(s.report.Crowds, crowd)
	}
}

// crowdExchanges are the algorithms of an Exchange, as its fields.
var crowdExchanges = []schedule.Algorithm{schedule.Direct, schedule.Bruck}

// probeCrowd has many ranks find out what it is to share cores and caches.
func (s *survey) probeCrowd(ctx context.Context, crowd *Crowd) error {
	cases := []job.Case{
		{Work: schedule.CollectiveBarrier.String()},
		{Work: schedule.CollectiveAllgather.String(), Algorithm: schedule.Bruck, Bytes: short},
	}
	const first = 2 // of the exchanges
	for _, e := range crowd.Exchanges {
		for _, by := range crowdExchanges {
			cases = append(cases, job.Case{Work: schedule.CollectiveAllgather.String(), Algorithm: by, Bytes: e.Bytes})
		}
	}
	samples, err := s.ranks(crowd.Ranks, len(cases)).Measure(ctx, cases)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%d ranks on %s: %w", crowd.Ranks, s.Provider, err)
	}
	crowd.Barrier = append(crowd.Barrier, micros(samples[0]))
	crowd.Short = append(crowd.Short, micros(samples[1]))
	for i := range crowd.Exchanges {
		e, these := &crowd.Exchanges[i], samples[first+i*len(crowdExchanges):]
		e.Direct = append(e.Direct, micros(these[0]))
		e.Bruck = append(e.Bruck, micros(these[1]))
	}
	return nil
}

// probed is what was found out with so many bytes.
func (s *survey) probed(bytes int) *Probe {
	for i := range s.report.Network {
		if p := &s.report.Network[i]; p.Bytes == bytes {
			return p
		}
	}
	return &s.report.Network[0]
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
	first, p := s.report.Network[0], s.probed(r.Bytes)
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
