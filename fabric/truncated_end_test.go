package fabric_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A sender that ends amid a message that does not fit its receive leaves nothing behind for those
// of others.
func TestSenderEndsAmidTruncatedMessage(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		t.Run(provider, func(t *testing.T) {
			info := strewInfo(t, provider)
			f, d := partsOf(t, info)
			to := openStation(t, f, d, info)
			f, d = partsOf(t, info)
			other := openStation(t, f, d, info)
			other.peer = other.insert(t, to)
			to.insert(t, other)
			text := make([]byte, 8<<20)
			for round := range 10 {
				f, d := partsOf(t, info)
				from := openStation(t, f, d, info)
				from.peer = from.insert(t, to)
				to.insert(t, from)
				to.must(t, from, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)})
				from.must(t, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: from.peer, Tag: 1, Buf: text})
				for range 20 * round {
					from.turn(t, nil)
					to.turn(t, nil)
				}
				require.NoError(t, from.e.Close())
				for i := range 20 {
					to.got, other.got = nil, nil
					buf, want := make([]byte, 20), fmt.Sprintf("message %d of %d", i, round)
					op := to.must(t, other, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: buf, Context: 7})
					require.Equal(t, fabric.Posted, op.Result)
					other.must(t, to, fabric.Op{Kind: fabric.OpTaggedSend, Peer: other.peer, Tag: 2, Buf: []byte(want)})
					for {
						c := to.await(t, other)
						if c.Context == 7 {
							require.NoError(t, c.Err)
							require.Equal(t, want, string(buf[:c.Len]))
							break
						}
					}
				}
			}
		})
	}
}
