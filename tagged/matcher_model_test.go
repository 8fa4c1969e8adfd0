// A matcher is used by one goroutine: the race detector has nothing to see in it.

//go:build !race

package tagged_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/tagged"
)

// naiveMatcher is what a Matcher should do, with two lists.
type naiveMatcher struct {
	receives []naiveReceive
	messages []tagged.Message[int]
}

type naiveReceive struct {
	pattern tagged.Pattern
	value   int
}

func takes(p tagged.Pattern, e tagged.Envelope) bool {
	return p.Context == e.Context && (p.Source == tagged.AnySource || p.Source == e.Source) && p.Tag|p.Ignore == e.Tag|p.Ignore
}

func (n *naiveMatcher) find(p tagged.Pattern) int {
	return slices.IndexFunc(n.messages, func(m tagged.Message[int]) bool { return takes(p, m.Envelope) })
}

func (n *naiveMatcher) post(p tagged.Pattern, value int) (tagged.Message[int], bool) {
	message, matched := n.take(p)
	if !matched {
		n.receives = append(n.receives, naiveReceive{p, value})
	}
	return message, matched
}

func (n *naiveMatcher) arrive(e tagged.Envelope, value int) (int, bool) {
	for i, r := range n.receives {
		if takes(r.pattern, e) {
			n.receives = slices.Delete(n.receives, i, i+1)
			return r.value, true
		}
	}
	n.messages = append(n.messages, tagged.Message[int]{Envelope: e, Value: value})
	return 0, false
}

func (n *naiveMatcher) cancel(value int) (int, bool) {
	i := slices.IndexFunc(n.receives, func(r naiveReceive) bool { return r.value == value })
	if i < 0 {
		return 0, false
	}
	n.receives = slices.Delete(n.receives, i, i+1)
	return value, true
}

func (n *naiveMatcher) probe(p tagged.Pattern) (tagged.Message[int], bool) {
	if i := n.find(p); i >= 0 {
		return n.messages[i], true
	}
	return tagged.Message[int]{}, false
}

func (n *naiveMatcher) take(p tagged.Pattern) (tagged.Message[int], bool) {
	i := n.find(p)
	if i < 0 {
		return tagged.Message[int]{}, false
	}
	message := n.messages[i]
	n.messages = slices.Delete(n.messages, i, i+1)
	return message, true
}

// matching is one step of a program: a message arrives from the source, with the
// pattern's tag, or the pattern is posted, probed or taken, or an earlier receive
// is cancelled.
type matching struct {
	kind    matchingKind
	source  uint32
	pattern tagged.Pattern
	earlier int // of the receives ever posted, modulo their number
}

type matchingKind uint8

const (
	arrives matchingKind = iota
	posts
	cancels
	probes
	claims
	matchingKinds
)

func (s matching) String() string {
	return fmt.Sprintf("%s from %d, %+v, earlier %d",
		[...]string{"arrive", "post", "cancel", "probe", "take"}[s.kind], s.source, s.pattern, s.earlier)
}

// twins are a matcher and its model.
type twins struct {
	matcher tagged.Matcher[int, int]
	naive   naiveMatcher
	tickets []tagged.ReceiveTicket[int]
	arrived int
}

// do takes a step in both, and compares.
func (w *twins) do(t require.TestingT, s matching) {
	equal := func(want, got any) {
		if want != got {
			require.Equal(t, want, got, "%v", s)
		}
	}
	switch s.kind {
	case arrives:
		e := tagged.Envelope{Context: s.pattern.Context, Source: s.source, Tag: s.pattern.Tag}
		w.arrived++
		want, wantMatched := w.naive.arrive(e, w.arrived)
		got, matched := w.matcher.Arrive(e, w.arrived)
		equal(wantMatched, matched)
		equal(want, got)
	case posts:
		want, wantMatched := w.naive.post(s.pattern, len(w.tickets))
		ticket, got, matched := w.matcher.Post(s.pattern, len(w.tickets))
		equal(wantMatched, matched)
		equal(want, got)
		equal(matched, ticket == tagged.ReceiveTicket[int]{})
		w.tickets = append(w.tickets, ticket)
	case cancels:
		if len(w.tickets) == 0 {
			return
		}
		earlier := s.earlier % len(w.tickets)
		want, wantFound := w.naive.cancel(earlier)
		got, found := w.matcher.Cancel(w.tickets[earlier])
		equal(wantFound, found)
		equal(want, got)
	case probes:
		want, wantFound := w.naive.probe(s.pattern)
		got, found := w.matcher.Probe(s.pattern)
		equal(wantFound, found)
		equal(want, got)
	case claims:
		want, wantFound := w.naive.take(s.pattern)
		got, found := w.matcher.Take(s.pattern)
		equal(wantFound, found)
		equal(want, got)
	}
	equal(len(w.naive.receives), w.matcher.Posted())
	equal(len(w.naive.messages), w.matcher.Unexpected())
}

// drain takes out what is left, message by message and receive by receive.
func (w *twins) drain(t require.TestingT) {
	for context := range uint32(2) {
		for n := w.matcher.Unexpected(); n >= 0; n-- {
			w.do(t, matching{kind: claims, pattern: tagged.Pattern{Context: context, Source: tagged.AnySource, Ignore: tagged.AnyTag}})
		}
	}
	for n := range w.tickets {
		w.do(t, matching{kind: cancels, earlier: n})
	}
	require.Zero(t, w.matcher.Unexpected())
	require.Zero(t, w.matcher.Posted())
	require.NoError(t, w.matcher.Check())
}

// The tags and masks differ in each half of their bits.
var (
	someTags  = []uint64{0, 1, 2, 3, 1 << 31, 1 << 32, 1<<32 | 1, 1<<63 | 1, ^uint64(0)}
	someMasks = []uint64{0, tagged.AnyTag, 1, 2, 3, 1 << 32, 1<<32 | 1, ^uint64(1), 1 << 63, 1<<32 - 1}
	// noMix gives all keys the same hash.
	noMix = [5]uint64{}
)

func drawMatching(t *rapid.T) matching {
	p := tagged.Pattern{
		Context: uint32(rapid.IntRange(0, 1).Draw(t, "context")),
		Source:  uint32(rapid.IntRange(0, 2).Draw(t, "source")),
		Tag:     rapid.SampledFrom(someTags).Draw(t, "tag"),
	}
	source := p.Source
	if rapid.Bool().Draw(t, "any") {
		p.Source = tagged.AnySource
	}
	switch rapid.IntRange(0, 3).Draw(t, "mask") {
	case 1:
		p.Ignore = tagged.AnyTag
	case 2:
		p.Ignore = rapid.SampledFrom(someMasks).Draw(t, "ignore")
	case 3: // more masks than there are classes for
		p.Ignore = uint64(rapid.IntRange(0, 4*16).Draw(t, "ignore"))
	}
	return matching{
		kind:    matchingKind(rapid.IntRange(0, int(matchingKinds)-1).Draw(t, "kind")),
		source:  source,
		pattern: p,
		earlier: rapid.IntRange(0, 1<<10).Draw(t, "earlier"),
	}
}

// Random programs of posts, arrivals, cancels, probes and matched probes do
// what two lists do.
func TestMatcherModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w twins
		if rapid.Bool().Draw(t, "same hash") {
			w.matcher.Seed(noMix)
		}
		for _, s := range rapid.SliceOf(rapid.Custom(drawMatching)).Draw(t, "program") {
			w.do(t, s)
			require.NoError(t, w.matcher.Check())
		}
		w.drain(t)
	})
}

// Programs that let thousands of receives and of messages wait and go again,
// several times, so that memory comes and goes.
func TestMatcherModelDeep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var w twins
	for phase := range 8 {
		kinds := []matchingKind{arrives, posts, cancels, probes, claims}
		switch phase % 4 {
		case 0:
			kinds = append(kinds, arrives, arrives, arrives, arrives, arrives, arrives, arrives, arrives, arrives)
		case 2:
			kinds = append(kinds, posts, posts, posts, posts, posts, posts, posts, posts, posts)
		}
		for range 15_000 {
			p := tagged.Pattern{
				Context: random.Uint32N(2),
				Source:  random.Uint32N(64),
				Tag:     random.Uint64N(1 << 10),
			}
			source := p.Source
			if random.IntN(4) == 0 {
				p.Source = tagged.AnySource
			}
			switch random.IntN(16) {
			case 0:
				p.Tag, p.Ignore = p.Tag<<10, 15<<10
			case 1:
				p.Tag, p.Ignore = p.Tag<<20, 1<<20-1
			case 2:
				// Takes whatever is there, but not too often: else nothing waits.
				if random.IntN(64) == 0 {
					p.Ignore = tagged.AnyTag
				}
			}
			w.do(t, matching{kind: kinds[random.IntN(len(kinds))], source: source, pattern: p, earlier: random.IntN(1 << 30)})
		}
		require.NoError(t, w.matcher.Check())
		if phase%4 == 0 {
			require.Greater(t, w.matcher.Unexpected(), 5000)
		}
		if phase%4 == 2 {
			require.Greater(t, w.matcher.Posted(), 5000)
		}
		if phase%2 == 1 {
			w.drain(t)
		}
	}
}

// Four bytes are a step, see drawMatching.
func FuzzMatcher(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 1, 1, 0, 3, 4, 1, 2, 4, 4, 1, 2, 4, 4, 1, 2})
	f.Add([]byte{1, 4, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		var w twins
		if len(program)%4 == 1 {
			w.matcher.Seed(noMix)
		}
		for step := range slices.Chunk(program[:min(len(program), 4<<10)/4*4], 4) {
			s := matching{
				kind:   matchingKind(step[0] % byte(matchingKinds)),
				source: uint32(step[1] >> 1 & 1),
				pattern: tagged.Pattern{
					Context: uint32(step[1] & 1),
					Source:  uint32(step[1] >> 1 & 1),
					Tag:     someTags[int(step[2])%len(someTags)],
					Ignore:  uint64(step[3]),
				},
				earlier: int(step[3]),
			}
			if step[1]&4 != 0 {
				s.pattern.Source = tagged.AnySource
			}
			if int(step[3]) < len(someMasks) {
				s.pattern.Ignore = someMasks[step[3]]
			}
			w.do(t, s)
		}
		require.NoError(t, w.matcher.Check())
		w.drain(t)
	})
}
