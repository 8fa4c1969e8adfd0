package suite

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/report"
	"github.com/weft-go/weft/tagged"
)

// matcherBenchmarks are P7: what a receive and its message cost the matcher of package
// tagged, in this process, while it has so many others to tell them from: receives that are
// posted, or messages that nobody has asked for. Half of the receives name source and tag, the
// others leave out the source, or the tag, or some bits of it, and they come up in an order that
// is none.
func matcherBenchmarks() (all []benchmark) {
	for _, side := range []struct {
		name    string
		prepare func(depth uint32) exchange
	}{{"receives posted", amongReceives}, {"messages unexpected", amongMessages}} {
		for _, depth := range []uint32{1, 10, 100, 1000, 10_000, 100_000, 1_000_000} {
			all = append(all, matcherBenchmark(side.name, depth, side.prepare))
		}
	}
	return all
}

// mostCached is the depth to which the matcher's memory is in the caches, and the cost is to be
// that of depth 1, but for a factor of 2.
const mostCached = 10_000

func matcherBenchmark(name string, depth uint32, prepare func(uint32) exchange) benchmark {
	b := benchmark{
		id: "P7", work: fmt.Sprintf("%d %s", depth, name), unit: unit{name: "ns", scale: 1e9}, limit: 40,
		order: order{count: 1_000_000, warmup: 1},
		weft:  measureMatcher(depth, prepare),
		curve: &report.Curve{Chart: "Matching a receive and a message", Line: "among " + name, Axis: "depth", X: float64(depth), Alone: true},
	}
	if depth > mostCached {
		b.limit = 0
	}
	if depth > 1 && depth <= mostCached {
		b.baselines = []baseline{{"depth 1", measureMatcher(1, prepare), 2}}
	}
	return b
}

// exchange has one receive and one message match, and says whether they did.
type exchange func() bool

// measureMatcher times many exchanges, in parts.
func measureMatcher(depth uint32, prepare func(uint32) exchange) measure {
	return func(ctx context.Context, _ *tools, o order) (s bench.Sample, err error) {
		const parts = 64
		once := prepare(depth)
		each := max(o.count/parts, 1)
		var took []float64
		for range parts + 1 {
			if ctx.Err() != nil {
				return s, ctx.Err()
			}
			begin := time.Now()
			for range each {
				if !once() {
					return s, fmt.Errorf("a message and its receive did not match, among %d", depth)
				}
			}
			took = append(took, time.Since(begin).Seconds()/float64(each))
		}
		took = took[1:] // the first one warms up
		for _, t := range took {
			s.Mean += t / parts
		}
		slices.Sort(took)
		s.Typical, s.Operations = took[parts/2], parts*each
		runtime.KeepAlive(once)
		return s, nil
	}
}

func amongReceives(depth uint32) exchange {
	var m tagged.Matcher[uint32, uint32]
	for n := range depth {
		m.Post(mixedPattern(n), n)
	}
	next := shuffled(depth)
	return func() bool {
		n := next()
		p := mixedPattern(n)
		got, matched := m.Arrive(envelopeOf(p), n)
		m.Post(p, n)
		return matched && got == n
	}
}

func amongMessages(depth uint32) exchange {
	var m tagged.Matcher[uint32, uint32]
	for n := range depth {
		m.Arrive(envelopeOf(mixedPattern(n)), n)
	}
	next := shuffled(depth)
	return func() bool {
		n := next()
		p := mixedPattern(n)
		_, message, matched := m.Post(p, n)
		m.Arrive(envelopeOf(p), n)
		return matched && message.Value == n
	}
}

// shuffled leads through all numbers below a power of 10, again and again: the step has no factor
// in common with them.
func shuffled(depth uint32) func() uint32 {
	n, step := uint32(0), 611_953%depth
	return func() uint32 {
		now := n
		if n += step; n >= depth {
			n -= depth
		}
		return now
	}
}

// mixedPattern is one that no other matches the message of: those without a tag have their
// source to themselves, and those without a source their tag.
func mixedPattern(n uint32) tagged.Pattern {
	switch n % 8 {
	case 1, 5:
		return tagged.Pattern{Context: 1, Source: tagged.AnySource, Tag: uint64(n)}
	case 3:
		return tagged.Pattern{Context: 2, Source: n, Tag: uint64(n), Ignore: tagged.AnyTag}
	case 7:
		return tagged.Pattern{Context: 1, Source: n % 64, Tag: uint64(n) << 8, Ignore: 1<<8 - 1}
	}
	return tagged.Pattern{Context: 1, Source: n % 64, Tag: uint64(n)}
}

// envelopeOf is that of a message for a pattern.
func envelopeOf(p tagged.Pattern) tagged.Envelope {
	if p.Source == tagged.AnySource {
		p.Source = 5
	}
	return tagged.Envelope{Context: p.Context, Source: p.Source, Tag: p.Tag}
}
