//go:build !race

package fabric_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Who takes a turn of an endpoint in which another goroutine has one is told so, and the other
// one goes on. It is a data race of the program, which the race detector would report.
func TestTurnOfTwoGoroutines(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		f, d := partsOf(t, info)
		s, other := openStation(t, f, d, info), openStation(t, f, d, info)
		s.peer = s.insert(t, other)
		var one [1]fabric.Completion
		ended := waiting(t, provider, func() int64 { return fabric.UsersOfEndpoint(s.e) },
			func(int) (int, error) { return s.e.Turn(nil, one[:], 1<<20) })
		posts := make([]fabric.Op, 1)
		require.Eventually(t, func() bool { // between two turns there is none
			posts[0] = fabric.Op{Kind: fabric.OpTaggedReceive, Peer: s.peer, Tag: 1, Buf: make([]byte, 8)}
			_, err := s.e.Turn(posts, nil, 0)
			if err != nil {
				require.ErrorIs(t, err, fabric.ErrInvalid)
				require.ErrorContains(t, err, "another goroutine")
				require.Equal(t, fabric.Failed, posts[0].Result)
				require.Equal(t, err, posts[0].Err)
			}
			return err != nil
		}, 30*time.Second, time.Millisecond)
		require.NoError(t, soon(t, s.e))
		ended()
	})
}
