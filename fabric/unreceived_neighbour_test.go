package fabric_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// A message that an endpoint has no receive for keeps none from another endpoint of the domain.
func TestUnreceivedMessageOfNeighbour(t *testing.T) {
	for _, provider := range testenv.Providers() {
		t.Run(provider, func(t *testing.T) {
			info := strewInfo(t, provider) // of tcp's own it does, in 2.1
			f, d := partsOf(t, info)
			sender, holder, taker := openStation(t, f, d, info), openStation(t, f, d, info), openStation(t, f, d, info)
			for _, s := range []*station{holder, taker} {
				sender.must(t, s, fabric.Op{Kind: fabric.OpSend, Peer: sender.insert(t, s), Buf: []byte("unexpected")})
				for len(sender.got) == 0 {
					sender.turn(t, nil)
					s.turn(t, nil)
				}
				sender.got = nil
			}
			for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
				holder.turn(t, nil)
				taker.turn(t, nil)
			}
			got := make([]byte, 10)
			taker.must(t, holder, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got})
			require.NoError(t, taker.await(t, holder).Err)
			require.Equal(t, "unexpected", string(got))
		})
	}
}
