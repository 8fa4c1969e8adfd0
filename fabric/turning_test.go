package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Who takes a turn of an endpoint in which another goroutine has one is told so, and nothing is
// posted. The other one's turn is made up: two at once would be a data race of the test's.
func TestTurnOfTwoGoroutines(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		s, other := openStation(t, f, d, info), openStation(t, f, d, info)
		s.peer = s.insert(t, other)
		posts := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: s.peer, Tag: 1, Buf: make([]byte, 8)}}
		*fabric.TurningOf(s.e) = true
		_, err := s.e.Turn(posts, nil, 0)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorContains(t, err, "another goroutine")
		require.Equal(t, fabric.Failed, posts[0].Result)
		require.Equal(t, err, posts[0].Err)
		require.Zero(t, s.q.InFlight())
		// That one is over.
		*fabric.TurningOf(s.e) = false
		_, err = s.e.Turn(posts, nil, 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Posted, posts[0].Result)
		require.False(t, *fabric.TurningOf(s.e))
	})
}
