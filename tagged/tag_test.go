package tagged_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/tagged"
)

func TestTagLayout(t *testing.T) {
	// Connection 0 is the layout of a single connection: mark | id.
	require.Equal(t, uint64(1<<32|7), tagged.LengthTag(0, 7))
	require.Equal(t, uint64(1<<33|7), tagged.PayloadTag(0, 7))
	require.Equal(t, uint64(3<<32|7), tagged.ControlTag(0, 7))

	require.Equal(t, uint64(5<<34|1<<32|math.MaxUint32), tagged.LengthTag(5, math.MaxUint32))
	require.Equal(t, uint64(math.MaxUint64), tagged.ControlTag(tagged.MaxConnection, math.MaxUint32))
}

func TestTagRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		connection := rapid.Uint32Max(tagged.MaxConnection).Draw(t, "connection")
		id := rapid.Uint32().Draw(t, "id")
		for tag, want := range map[uint64]tagged.Kind{
			tagged.LengthTag(connection, id):    tagged.KindLength,
			tagged.PayloadTag(connection, id):   tagged.KindPayload,
			tagged.ControlTag(connection, id):   tagged.KindControl,
			uint64(connection)<<34 | uint64(id): tagged.KindNone,
		} {
			kind, gotConnection, gotID := tagged.ParseTag(tag)
			require.Equal(t, want, kind)
			require.Equal(t, connection, gotConnection)
			require.Equal(t, id, gotID)
		}
	})
}

// The wildcard receives share an endpoint: each must take its own kind only, by
// the predicate of the transport.
func TestTagMatching(t *testing.T) {
	matches := func(receive, ignore, sent uint64) bool { return receive|ignore == sent|ignore }
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.Uint64().Draw(t, "tag")
		kind, connection, id := tagged.ParseTag(sent)
		length := kind == tagged.KindLength
		require.Equal(t, length && connection >= tagged.HandshakeID, matches(tagged.SharedLength, tagged.SharedIgnore, sent))
		require.Equal(t, length, matches(tagged.LengthTag(connection, 0), tagged.MessageIgnore, sent))
		require.False(t, matches(tagged.LengthTag(connection^1, 0), tagged.MessageIgnore, sent))
		require.Equal(t, kind == tagged.KindControl, matches(tagged.KControl, tagged.ControlIgnore, sent))
		require.Equal(t, kind == tagged.KindPayload, matches(tagged.PayloadTag(connection, id), 0, sent))
	})
}

func TestKindString(t *testing.T) {
	require.Equal(t, "none length payload control", tagged.KindNone.String()+" "+
		tagged.KindLength.String()+" "+tagged.KindPayload.String()+" "+tagged.KindControl.String())
}
