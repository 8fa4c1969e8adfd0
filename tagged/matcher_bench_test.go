package tagged_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/tagged"
)

// BenchmarkMatcher measures what a message costs while depth receives are
// posted, or depth messages are unexpected, that it has to be told from: with
// source and tag named, and with wildcards mixed: half of them name both, the
// others leave out the source, or the tag, or some bits of it. They come up in
// an order that is none.
//
// An operation is a receive that is posted and its message that arrives
// (posted), or a message that arrives and its receive that is posted
// (unexpected).
func BenchmarkMatcher(b *testing.B) {
	for _, shape := range []struct {
		name    string
		pattern func(n uint32) tagged.Pattern
	}{
		{"exact", exactPattern},
		{"wildcards", mixedPattern},
	} {
		for _, depth := range []uint32{1, 10, 100, 1000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("posted/%s/depth=%d", shape.name, depth), func(b *testing.B) {
				benchmarkPosted(b, depth, shape.pattern)
			})
			b.Run(fmt.Sprintf("unexpected/%s/depth=%d", shape.name, depth), func(b *testing.B) {
				benchmarkUnexpected(b, depth, shape.pattern)
			})
		}
	}
}

// benchmarkPosted keeps depth receives posted.
func benchmarkPosted(b *testing.B, depth uint32, pattern func(uint32) tagged.Pattern) {
	var m tagged.Matcher[uint32, uint32]
	for n := range depth {
		m.Post(pattern(n), n)
	}
	n, step := uint32(0), step(depth)
	b.ReportAllocs()
	for b.Loop() {
		p := pattern(n)
		got, matched := m.Arrive(envelope(p), n)
		if !matched || got != n {
			b.Fatal(n, got, matched)
		}
		m.Post(p, n)
		if n += step; n >= depth {
			n -= depth
		}
	}
	require.Equal(b, int(depth), m.Posted())
}

// benchmarkUnexpected keeps depth messages unexpected.
func benchmarkUnexpected(b *testing.B, depth uint32, pattern func(uint32) tagged.Pattern) {
	var m tagged.Matcher[uint32, uint32]
	for n := range depth {
		m.Arrive(envelope(pattern(n)), n)
	}
	for n := range min(depth, 8) {
		m.Probe(pattern(n)) // builds the class of the mask
	}
	n, step := uint32(0), step(depth)
	b.ReportAllocs()
	for b.Loop() {
		p := pattern(n)
		_, message, matched := m.Post(p, n)
		if !matched || message.Value != n {
			b.Fatal(n, message, matched)
		}
		m.Arrive(envelope(p), n)
		if n += step; n >= depth {
			n -= depth
		}
	}
	require.Equal(b, int(depth), m.Unexpected())
}

// step leads through all numbers below depth, modulo depth. It has no factor in
// common with the depths above.
func step(depth uint32) uint32 { return 611_953 % depth }

func exactPattern(n uint32) tagged.Pattern {
	return tagged.Pattern{Context: 1, Source: n % 64, Tag: uint64(n)}
}

// mixedPattern is one that no other matches the message of: those without a tag
// have their source to themselves, and those without a source their tag.
func mixedPattern(n uint32) tagged.Pattern {
	switch n % 8 {
	case 1, 5:
		return tagged.Pattern{Context: 1, Source: tagged.AnySource, Tag: uint64(n)}
	case 3:
		return tagged.Pattern{Context: 2, Source: n, Tag: uint64(n), Ignore: tagged.AnyTag}
	case 7:
		return tagged.Pattern{Context: 1, Source: n % 64, Tag: uint64(n) << 8, Ignore: 1<<8 - 1}
	}
	return exactPattern(n)
}

// envelope is that of a message for a pattern.
func envelope(p tagged.Pattern) tagged.Envelope {
	if p.Source == tagged.AnySource {
		p.Source = 5
	}
	return tagged.Envelope{Context: p.Context, Source: p.Source, Tag: p.Tag}
}
