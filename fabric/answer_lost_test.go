//go:build linux

package fabric_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// What a peer has sent before it closed is there, also behind something of its that asks for an answer,
// which has nowhere to go any more.
func TestMessagesBehindLostAnswer(t *testing.T) {
	if !slices.Contains(testenv.Providers(), "tcp") {
		return // Elsewhere a send ends with its receive.
	}
	sum := fabric.Atomic{Operation: fabric.Sum, Type: fabric.Int64}
	ones := bytes.Repeat([]byte{1}, 64<<10)
	for name, asking := range map[string]fabric.Op{
		"atomic":       {Kind: fabric.OpAtomic, Buf: ones[:8]},
		"fetch":        {Kind: fabric.OpFetch, Buf: ones[:8]},
		"long fetch":   {Kind: fabric.OpFetch, Buf: ones[:1024]},
		"long message": {Kind: fabric.OpSend, Buf: ones},
	} {
		t.Run(name, func(t *testing.T) {
			info := undertakingInfo(t, "tcp")
			f, d := partsOf(t, info)
			a, beside := openStation(t, f, d, info), openStation(t, f, d, info)
			f, d = partsOf(t, info)
			b := openStation(t, f, d, info)
			a.peer, b.peer = a.insert(t, b), b.insert(t, a)
			f, d = partsOf(t, info)
			silent := openStation(t, f, d, info)
			memory, remote := shared(t, a, 4096)

			// More than ofi_rxm takes in at once.
			const before, behind, length = 200, 20, 16
			for range before + behind + 1 {
				a.must(t, b, fabric.Op{Kind: fabric.OpReceive, Buf: make([]byte, 64<<10), Peer: fabric.AddressAny})
			}
			small := fabric.Op{Kind: fabric.OpInject, Buf: make([]byte, length), Peer: b.peer}
			b.must(t, a, small)
			a.await(t, b)

			asking.Peer = b.peer
			if asking.Kind != fabric.OpSend {
				atomic := sum
				if asking.Remote = remote; asking.Kind == fabric.OpFetch {
					atomic.Result = make([]byte, len(asking.Buf))
				}
				asking.Atomic = &atomic
			}
			for i := 1; i < before+behind; i++ {
				if i == before {
					b.mustAlone(t, asking)
				}
				b.mustAlone(t, small)
			}
			require.NoError(t, b.e.Close())
			// It brings up all that there is in the domain, the end of the connection, too.
			for range 1000 {
				beside.turn(t, nil)
			}
			// While it connects, ofi_rxm always looks whether connections have ended.
			toSilent := []fabric.Op{{Kind: fabric.OpInject, Buf: make([]byte, length), Peer: a.insert(t, silent)}}
			a.turn(t, toSilent)
			require.Equal(t, fabric.Refused, toSilent[0].Result)

			whole, asked := 1, 0
			if asking.Kind == fabric.OpSend {
				asked = 1
			}
			var failed []error
			for deadline := time.Now().Add(30 * time.Second); whole < before+behind || len(failed) < asked; {
				require.True(t, time.Now().Before(deadline), "%d have come, of %d, and %d errors", whole, before+behind, len(failed))
				for _, c := range a.got {
					if c.Err != nil {
						failed = append(failed, c.Err)
					} else {
						require.Equal(t, length, c.Len)
						whole++
					}
				}
				a.got = a.got[:0]
				a.turn(t, nil)
			}
			if asking.Kind != fabric.OpSend {
				require.Empty(t, failed)
				require.Equal(t, asking.Buf, memory[:len(asking.Buf)])
				return
			}
			require.Len(t, failed, asked)
			require.ErrorIs(t, failed[0], fabric.ErrUnreachable)
		})
	}
}

// mustAlone is must while nobody else takes a turn.
func (s *station) mustAlone(t *testing.T, op fabric.Op) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		posts := []fabric.Op{op}
		s.turn(t, posts)
		require.NoError(t, posts[0].Err)
		if posts[0].Result != fabric.Refused {
			return
		}
		require.True(t, time.Now().Before(deadline), "refused for ever")
	}
}
