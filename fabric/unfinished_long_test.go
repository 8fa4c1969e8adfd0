package fabric_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// When an end of a long operation is closed amid it, other endpoints of both domains go on, also those of
// the same queue.
func TestCloseAmidLongOperations(t *testing.T) {
	const size = 32 << 20
	providers := append(testenv.Providers(), "net")
	if slices.Contains(providers, "tcp") && fabric.LibraryVersion().Major >= 2 {
		providers = append(providers, "tcp;")
	}
	kinds := map[string]fabric.Op{
		"send":            {Kind: fabric.OpSend},
		"tagged send":     {Kind: fabric.OpTaggedSend, Tag: 5},
		"write":           {Kind: fabric.OpWrite},
		"told write":      {Kind: fabric.OpWrite, Flags: fabric.Immediate, Immediate: 7},
		"delivered write": {Kind: fabric.OpWrite, Flags: fabric.DeliveryComplete},
		"delivered send":  {Kind: fabric.OpSend, Flags: fabric.DeliveryComplete},
		"read":            {Kind: fabric.OpRead},
	}
	for _, provider := range providers {
		for name, op := range kinds {
			for _, closes := range []string{"initiator", "target", "both"} {
				t.Run(provider+"/"+name+"/"+closes, func(t *testing.T) {
					info := undertakingInfo(t, provider)
					f, d := partsOf(t, info)
					one, other := openStation(t, f, d, info), openStation(t, f, d, info)
					toOther, toOne := one.insert(t, other), other.insert(t, one)
					far, there := partsOf(t, info)
					third, fourth := openStation(t, far, there, info), openStation(t, far, there, info)
					toFourth, toThird := third.insert(t, fourth), fourth.insert(t, third)
					theirs, remote := shared(t, third, size)
					for range 3 {
						a := stationAt(t, f, d, info, one.q)
						b := stationAt(t, far, there, info, third.q)
						a.peer, b.peer = a.insert(t, b), b.insert(t, a)
						mine, land := make([]byte, size), make([]byte, size)
						from, to := mine, theirs
						if op.Kind == fabric.OpRead {
							from, to = theirs, mine
						}
						if op.Kind == fabric.OpSend || op.Kind == fabric.OpTaggedSend {
							to = land
							receive := fabric.OpReceive
							if op.Kind == fabric.OpTaggedSend {
								receive = fabric.OpTaggedReceive
							}
							b.must(t, a, fabric.Op{Kind: receive, Peer: fabric.AddressAny, Tag: 5, Buf: land})
						}
						clear(theirs)
						from[0], from[size-1] = 1, 1
						op := op
						op.Peer, op.Buf, op.Remote = a.peer, mine, remote
						op = a.post(t, b, op)
						if op.Err != nil {
							require.ErrorIs(t, op.Err, fabric.ErrNotSupported)
							return
						}
						for deadline := time.Now().Add(30 * time.Second); to[0] == 0 && to[size-1] == 0 && len(a.got) == 0; {
							require.True(t, time.Now().Before(deadline), "nothing comes")
							a.turn(t, nil)
							b.turn(t, nil)
						}
						if closes != "target" {
							require.NoError(t, a.e.Close())
						}
						if closes != "initiator" {
							require.NoError(t, b.e.Close())
						}
						for range 2 {
							orderly(t, one, other, toOther, toOne)
							orderly(t, third, fourth, toFourth, toThird)
						}
						if closes == "initiator" {
							require.NoError(t, b.e.Close())
						} else if closes == "target" {
							require.NoError(t, a.e.Close())
						}
						orderly(t, one, other, toOther, toOne)
						orderly(t, third, fourth, toFourth, toThird)
					}
				})
			}
		}
	}
}
