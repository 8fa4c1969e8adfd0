package fabric_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// postUntilRefused posts one operation after the other until there is no room, reading no
// completion meanwhile, and returns how many were taken.
func postUntilRefused(t *testing.T, s *station, operation func(i int) fabric.Op) int {
	t.Helper()
	for taken := 0; ; taken++ {
		require.LessOrEqual(t, taken, s.q.Size(), "more operations than the queue has entries")
		posts := []fabric.Op{operation(taken)}
		_, err := s.e.Turn(posts, nil, 0)
		require.NoError(t, err)
		if posts[0].Result == fabric.Refused {
			return taken
		}
		require.NoError(t, posts[0].Err)
	}
}

// A sender that posts until it is refused loses nothing: everything that was
// taken arrives in order, and what was refused is taken later.
func TestPostUntilRefused(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		number := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }
		send := func(a *station, kind fabric.OpKind) func(i int) fabric.Op {
			return func(i int) fabric.Op {
				return fabric.Op{Kind: kind, Peer: a.peer, Buf: number(i), Context: uint64(i)}
			}
		}
		for _, kinds := range [][2]fabric.OpKind{{fabric.OpSend, fabric.OpReceive}, {fabric.OpTaggedSend, fabric.OpTaggedReceive}} {
			t.Run(kinds[0].String(), func(t *testing.T) {
				a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
				// Some connect with the first message, and take none until then.
				b.must(t, a, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny})
				a.must(t, b, fabric.Op{Kind: kinds[0], Peer: a.peer})
				require.NoError(t, b.await(t, a).Err)
				require.NoError(t, a.await(t, b).Err)
				count := postUntilRefused(t, a, send(a, kinds[0]))
				require.Positive(t, count)
				for i := range count + 1 {
					if i == count {
						a.must(t, b, send(a, kinds[0])(count))
					}
					got := make([]byte, 8)
					b.must(t, a, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Buf: got})
					c := b.await(t, a)
					require.NoError(t, c.Err)
					require.Equal(t, number(i), got)
				}
				contexts := map[uint64]bool{}
				for range count + 1 {
					c := a.await(t, b)
					require.NoError(t, c.Err)
					contexts[c.Context] = true
				}
				require.Len(t, contexts, count+1, "each send completes once")
				require.Zero(t, a.q.InFlight()+b.q.InFlight())
			})
			t.Run(kinds[1].String(), func(t *testing.T) {
				a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
				var bufs [][]byte
				receive := func(i int) fabric.Op {
					if i == len(bufs) {
						bufs = append(bufs, make([]byte, 8))
					}
					return fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Buf: bufs[i], Context: uint64(i)}
				}
				count := postUntilRefused(t, b, receive)
				require.Positive(t, count)
				for i := range count + 1 {
					if i == count {
						b.must(t, a, receive(count))
					}
					a.must(t, b, send(a, kinds[0])(i))
					c := b.await(t, a)
					require.NoError(t, c.Err)
					require.EqualValues(t, i, c.Context)
					require.Equal(t, number(i), bufs[i])
					require.NoError(t, a.await(t, b).Err)
				}
				require.Zero(t, a.q.InFlight()+b.q.InFlight())
			})
		}
	})
}
