package fabric_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A receive without a buffer takes a message of no bytes. A longer one is one that does not fit, and
// those behind it are received.
func TestReceiveWithoutBuffer(t *testing.T) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		for _, kinds := range [][2]fabric.OpKind{{fabric.OpSend, fabric.OpReceive}, {fabric.OpTaggedSend, fabric.OpTaggedReceive}} {
			for _, size := range []int{0, 10, 5000, 100_000} {
				for _, posted := range []bool{true, false} {
					for name, vector := range map[string][][]byte{"no buffer": nil, "empty ones": {{}, {}}} {
						t.Run(fmt.Sprintf("%s/%d/posted %v/%s", kinds[1], size, posted, name), func(t *testing.T) {
							a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
							next := make([]byte, 20)
							receive := func() {
								b.must(t, a, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Vector: vector, Context: 1})
								b.must(t, a, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Buf: next, Context: 2})
							}
							if posted {
								receive()
							}
							a.must(t, b, fabric.Op{Kind: kinds[0], Peer: a.peer, Buf: make([]byte, size)})
							a.must(t, b, fabric.Op{Kind: kinds[0], Peer: a.peer, Buf: []byte("next")})
							if !posted {
								receive()
							}
							for range 2 {
								switch c := b.await(t, a); {
								case c.Context == 2:
									require.NoError(t, c.Err)
									require.Equal(t, "next", string(next[:c.Len]))
								case size > 0:
									require.ErrorIs(t, c.Err, fabric.ErrTruncated)
								default:
									require.NoError(t, c.Err)
									require.Zero(t, c.Len)
								}
							}
						})
					}
				}
			}
		}
	})
}

// The same of connected endpoints: the receive ends.
func TestReceiveWithoutBufferOverConnection(t *testing.T) {
	eachConnected(t, func(t *testing.T, x *exchangeOffice) {
		for _, size := range []int{0, 10, 5000, 100_000} {
			t.Run(fmt.Sprint(size), func(t *testing.T) {
				a, b := x.couple(t)
				receives := []fabric.Op{{Kind: fabric.OpReceive}}
				_, err := b.Turn(receives, nil, 0)
				require.NoError(t, errors.Join(err, receives[0].Err))
				require.Equal(t, fabric.Posted, receives[0].Result)
				sends := []fabric.Op{{Kind: fabric.OpSend, Buf: make([]byte, size)}}
				var got [1]fabric.Completion
				deadline := time.Now().Add(30 * time.Second)
				for n := 0; n == 0; {
					require.True(t, time.Now().Before(deadline), "the receive does not end")
					_, err = a.Turn(sends, nil, 0)
					require.NoError(t, err)
					if len(sends) > 0 && sends[0].Result == fabric.Posted {
						sends = nil
					}
					n, err = b.TurnWait(nil, got[:], 1)
					require.NoError(t, err)
				}
				if size == 0 {
					require.NoError(t, got[0].Err)
				} else {
					require.ErrorIs(t, got[0].Err, fabric.ErrTruncated)
				}
			})
		}
	})
}
