//go:build linux

package fabric_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A peer that is closed while long messages to it are on their way does not hold up those of another endpoint
// to another peer.
func TestPeerIsClosedBesideAnother(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := undertakingInfo(t, provider)
		rounds := 2
		if provider == "efa" {
			rounds = 12
		}
		for turns := range rounds {
			f, d := partsOf(t, info)
			loser, sender := openStation(t, f, d, info), openStation(t, f, d, info)
			f, d = partsOf(t, info)
			closed, other := openStation(t, f, d, info), openStation(t, f, d, info)
			loser.peer, sender.peer = loser.insert(t, closed), sender.insert(t, other)
			closed.insert(t, loser)
			other.insert(t, sender)

			// On efa these go in pieces, for which the receiver asks.
			const length, count = 900 << 10, 8
			buf := make([]byte, length)
			for range count {
				for from, to := range map[*station]*station{loser: closed, sender: other} {
					to.must(t, from, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, length)})
					from.must(t, to, fabric.Op{Kind: fabric.OpSend, Peer: from.peer, Buf: buf})
				}
			}
			// Some are under way.
			for range 2 + turns {
				for _, s := range []*station{closed, other, loser, sender} {
					s.turn(t, nil)
				}
			}
			require.NoError(t, closed.e.Close())
			for deadline := time.Now().Add(time.Minute); len(other.got) < count || len(sender.got) < count; {
				require.True(t, time.Now().Before(deadline), "%d have arrived of %d, and %d are sent", len(other.got), count, len(sender.got))
				for _, s := range []*station{loser, sender, other} {
					s.turn(t, nil)
				}
			}
			for _, c := range append(other.got, sender.got...) {
				require.NoError(t, c.Err)
			}
		}
	})
}
