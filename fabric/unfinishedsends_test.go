package fabric_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// An endpoint is closed while somebody has not taken what it has sent, and does not until then,
// whether that one knows it or not. Others, also of its queue, are as before.
func TestCloseWhileNobodyTakes(t *testing.T) {
	lengths := []int{1, 3000, 100_000}
	if testing.Short() {
		lengths = lengths[1:2]
	}
	each(t, func(t *testing.T, provider string) {
		for way := range 16 {
			known, reads, shares, two := way&1 != 0, way&2 != 0, way&4 != 0, way&8 != 0
			if shares && two {
				continue
			}
			for _, length := range lengths {
				t.Run(fmt.Sprintf("known %t reads %t shares %t two queues %t %d", known, reads, shares, two, length), func(t *testing.T) {
					t.Cleanup(func() { nothingOpen(t) })
					info := strewInfo(t, provider)
					f, d := partsOf(t, info)
					a, silent := openStation(t, f, d, info), openStation(t, f, d, info)
					if two {
						a.v, a.e = vectorOf(t, d), endpointOf(t, d)
						require.NoError(t, a.e.EnableWith(fabric.Bindings{
							Vector: a.v, Send: queueOf(t, d, 64), Receive: queueOf(t, d, 64), Events: a.events,
						}))
					}
					q := a.q
					if !shares {
						q = nil
					}
					besides := stationAt(t, f, d, info, q)
					other := openStation(t, f, d, info)
					toOther, toBesides := besides.insert(t, other), other.insert(t, besides)
					toSilent := a.insert(t, silent)
					if known {
						silent.insert(t, a)
					}
					if reads {
						// Its device may take what comes.
						silent.turn(t, nil)
					}
					posts := make([]fabric.Op, 5)
					for range 3 {
						for i := range posts {
							posts[i] = fabric.Op{Kind: fabric.OpTaggedSend, Peer: toSilent, Tag: uint64(i), Context: 77, Buf: make([]byte, length)}
						}
						a.turn(t, posts)
					}
					require.NoError(t, a.e.Close())
					besides.got = nil
					orderly(t, besides, other, toOther, toBesides)
					for range 100 {
						besides.turn(t, nil)
						silent.turn(t, nil)
					}
					for _, c := range besides.got {
						require.NotEqual(t, uint64(77), c.Context)
					}
					toSilent, back := other.insert(t, silent), silent.insert(t, other)
					orderly(t, other, silent, toSilent, back)
				})
			}
		}
	})
}
