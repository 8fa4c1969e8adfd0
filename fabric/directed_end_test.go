package fabric_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// canceled requires the next completion to be the end of a cancelled receive.
func (s *station) canceled(t *testing.T, other *station, context uint64) {
	t.Helper()
	c := s.await(t, other)
	require.Equal(t, context, c.Context)
	require.ErrorIs(t, c.Err, fabric.ErrCanceled)
}

// canceledOf cancels a receive.
func (s *station) canceledOf(t *testing.T, other *station, op fabric.Op) {
	t.Helper()
	require.NoError(t, s.e.Cancel(op.Token))
	s.canceled(t, other, op.Context)
}

// A receive that names a peer, of an endpoint that takes messages of anybody, is cancelled as any other.
func TestCancelOfNamedPeerWithoutDirectedReceive(t *testing.T) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages)
		var ops []fabric.Op
		for i := range 3 {
			op := fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8), Context: uint64(i)}
			if i != 0 {
				op.Peer = b.peer
			}
			ops = append(ops, b.must(t, a, op))
		}
		require.NoError(t, b.e.Cancel(ops[1].Token))
		b.canceled(t, a, 1)
		for _, i := range []uint64{0, 2} {
			a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: []byte{byte(i)}})
			c := b.await(t, a)
			require.NoError(t, c.Err)
			require.Equal(t, i, c.Context)
			require.NoError(t, a.await(t, b).Err)
		}
		require.Zero(t, b.q.InFlight())
	})
}

// Endpoints are closed with receives from one peer in flight, in either order, and with messages that
// came for them, or are on their way.
func TestCloseWithDirectedReceives(t *testing.T) {
	run := func(t *testing.T, provider string, length int, receiverFirst bool) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.DirectedReceive|fabric.SourceAddress)
		// They know each other.
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer})
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: b.peer})
		require.NoError(t, b.await(t, a).Err)
		require.NoError(t, a.await(t, b).Err)
		for i := range 3 {
			for _, kind := range []fabric.OpKind{fabric.OpReceive, fabric.OpTaggedReceive} {
				op := b.post(t, a, fabric.Op{Kind: kind, Peer: b.peer, Buf: make([]byte, 200_000), Context: uint64(i)})
				if provider == "tcp" && op.Err != nil {
					require.ErrorIs(t, op.Err, fabric.ErrNotSupported)
					return
				}
				require.NoError(t, op.Err)
			}
		}
		if length > 0 {
			for range 5 {
				a.turn(t, []fabric.Op{
					{Kind: fabric.OpSend, Peer: a.peer, Buf: make([]byte, length)},
					{Kind: fabric.OpTaggedSend, Peer: a.peer, Buf: make([]byte, length)},
				})
			}
		}
		if receiverFirst {
			require.NoError(t, b.e.Close())
			require.NoError(t, a.e.Close())
		} else {
			require.NoError(t, a.e.Close())
			require.NoError(t, b.e.Close())
		}
	}
	eachWithLayers(t, func(t *testing.T, provider string) {
		for name, receiverFirst := range map[string]bool{"receiver first": true, "sender first": false} {
			for _, length := range []int{0, 10, 100_000} {
				t.Run(fmt.Sprintf("%s, %d bytes", name, length), func(t *testing.T) { run(t, provider, length, receiverFirst) })
			}
		}
	})
}

// Where receives from one peer and from anybody would end the process, those of the other kind are refused for
// as long as there are some.
func TestMixedReceives(t *testing.T) {
	eachWithLayers(t, func(t *testing.T, provider string) {
		if fabric.LibraryVersion().Major < 2 || provider == "sockets" || provider == "tcp" {
			return // which can mix them, or has one kind only
		}
		a, b := stations(t, provider, fabric.Messages|fabric.DirectedReceive|fabric.SourceAddress)
		receive := func(peer fabric.Address, context uint64) fabric.Op {
			return fabric.Op{Kind: fabric.OpReceive, Peer: peer, Buf: make([]byte, 8), Context: context}
		}
		alias, err := b.e.OpenAlias(fabric.Receiving, 0)
		if err != nil {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
		}
		kinds := []fabric.Address{b.peer, fabric.AddressAny}
		for i, peer := range kinds {
			posts := []fabric.Op{receive(peer, 1), receive(kinds[1-i], 2), receive(peer, 3)}
			b.turn(t, posts)
			require.NoError(t, posts[0].Err)
			require.ErrorIs(t, posts[1].Err, fabric.ErrInvalid)
			require.ErrorContains(t, posts[1].Err, "must not be mixed")
			require.NoError(t, posts[2].Err)
			if alias != nil {
				_, err := alias.Turn(posts[1:2], nil, 0)
				require.NoError(t, err)
				require.ErrorIs(t, posts[1].Err, fabric.ErrInvalid)
			}
			for _, context := range []uint64{1, 3} {
				a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer})
				c := b.await(t, a)
				require.NoError(t, c.Err)
				require.Equal(t, context, c.Context)
				require.NoError(t, a.await(t, b).Err)
			}
		}
		b.canceledOf(t, a, b.must(t, a, receive(b.peer, 4)))
		b.canceledOf(t, a, b.must(t, a, receive(fabric.AddressAny, 5)))
		require.Zero(t, b.q.InFlight())
		if alias != nil {
			require.NoError(t, alias.Close())
		}
	})
}
