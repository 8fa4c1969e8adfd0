package tagged_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/tagged"
)

func TestMatchedTagLayout(t *testing.T) {
	require.Equal(t, uint64(3<<50|5<<34|7), tagged.MatchedTag(tagged.Envelope{Context: 3, Source: 5, Tag: 7}))
	all := tagged.Envelope{Context: tagged.MaxMatchedContext, Source: tagged.MaxMatchedSource, Tag: tagged.MaxMatchedTag}
	require.Equal(t, ^tagged.KControl, tagged.MatchedTag(all))
	kind, _, _ := tagged.ParseTag(tagged.MatchedTag(all))
	require.Equal(t, tagged.KindNone, kind)
}

// envelopes draws one that a matched message can have. Often the parts are few, so that
// patterns match.
func drawEnvelope(t *rapid.T, name string) tagged.Envelope {
	few := rapid.Bool().Draw(t, name+" of few")
	most := func(limit uint32) uint32 {
		if few {
			return min(limit, 2)
		}
		return limit
	}
	return tagged.Envelope{
		Context: rapid.Uint32Max(most(tagged.MaxMatchedContext)).Draw(t, name+" context"),
		Source:  rapid.Uint32Max(most(tagged.MaxMatchedSource)).Draw(t, name+" source"),
		Tag:     uint64(rapid.Uint32Max(most(math.MaxUint32)).Draw(t, name+" tag")),
	}
}

func TestMatchedTagRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEnvelope(t, "message")
		got, ok := tagged.ParseMatchedTag(tagged.MatchedTag(e))
		require.True(t, ok)
		require.Equal(t, e, got)
	})
}

// A receive in the transport takes what the pattern takes, and no other kind of
// message; and the receives of those kinds do not take matched messages.
func TestMatchedReceive(t *testing.T) {
	matches := func(receive, ignore, sent uint64) bool { return receive|ignore == sent|ignore }
	rapid.Check(t, func(t *rapid.T) {
		e, wanted := drawEnvelope(t, "message"), drawEnvelope(t, "receive")
		p := tagged.Pattern{Context: wanted.Context, Source: wanted.Source, Tag: wanted.Tag}
		if rapid.Bool().Draw(t, "any source") {
			p.Source = tagged.AnySource
		}
		p.Ignore = rapid.SampledFrom([]uint64{0, 1, tagged.AnyTag}).Draw(t, "ignore")
		receive, ignore := p.MatchedReceive()
		sent := tagged.MatchedTag(e)
		require.Equal(t, p.Takes(e), matches(receive, ignore, sent))
		require.True(t, matches(tagged.AnyMatched, tagged.AnyMatchedIgnore, sent))
		require.False(t, matches(tagged.SharedLength, tagged.SharedIgnore, sent))
		require.False(t, matches(tagged.KControl, tagged.ControlIgnore, sent))
		connection, id := rapid.Uint32Max(tagged.MaxConnection).Draw(t, "connection"), rapid.Uint32().Draw(t, "id")
		for _, other := range []uint64{
			tagged.LengthTag(connection, id), tagged.PayloadTag(connection, id), tagged.ControlTag(connection, id),
		} {
			require.False(t, matches(receive, ignore, other))
			require.False(t, matches(tagged.AnyMatched, tagged.AnyMatchedIgnore, other))
			_, ok := tagged.ParseMatchedTag(other)
			require.False(t, ok)
		}
	})
}

// A pattern takes what a matcher gives to it.
func TestPatternTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, wanted := drawEnvelope(t, "message"), drawEnvelope(t, "receive")
		p := tagged.Pattern{Context: wanted.Context, Source: wanted.Source, Tag: wanted.Tag}
		if rapid.Bool().Draw(t, "any source") {
			p.Source = tagged.AnySource
		}
		p.Ignore = rapid.SampledFrom([]uint64{0, 1, tagged.AnyTag}).Draw(t, "ignore")
		var m tagged.Matcher[int, int]
		m.Arrive(e, 1)
		_, taken := m.Probe(p)
		require.Equal(t, taken, p.Takes(e))
	})
}

func FuzzParseMatchedTag(f *testing.F) {
	f.Add(uint64(0))
	f.Add(^tagged.KControl)
	f.Add(uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, tag uint64) {
		e, ok := tagged.ParseMatchedTag(tag)
		kind, _, _ := tagged.ParseTag(tag)
		require.Equal(t, kind == tagged.KindNone, ok)
		if ok {
			require.Equal(t, tag, tagged.MatchedTag(e))
		}
	})
}
