package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// withStranger opens two stations, and one that only knows the second, which does not know it.
func withStranger(t *testing.T, provider string, caps fabric.Capabilities) (a, b, c *station) {
	t.Helper()
	a, b = stations(t, provider, caps)
	f, d := partsOf(t, a.info)
	c = openStation(t, f, d, a.info)
	c.peer = c.insert(t, b)
	return a, b, c
}

// What comes from a peer that is in no vector is not taken for a message of one that is, and
// keeps none of those away.
func TestStrangersSource(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, c := withStranger(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.SourceAddress)
		for i, s := range []*station{c, a, c, c, a, a, c} {
			kinds := [2]fabric.OpKind{fabric.OpTaggedSend, fabric.OpTaggedReceive}
			if i%2 == 1 {
				kinds = [2]fabric.OpKind{fabric.OpSend, fabric.OpReceive}
			}
			buf := make([]byte, 100)
			b.must(t, s, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Buf: buf})
			s.must(t, b, fabric.Op{Kind: kinds[0], Peer: s.peer, Buf: []byte{byte(i + 1)}})
			done := b.await(t, s)
			require.NoError(t, done.Err)
			require.Equal(t, byte(i+1), buf[0])
			if s == a {
				require.Equal(t, b.peer, done.Source)
			} else {
				require.NotEqual(t, b.peer, done.Source)
			}
			require.NoError(t, s.await(t, b).Err)
		}
	})
}

// A receive that is for one peer does not get what a stranger sends; on sockets it does, and says
// that it is from nobody known.
func TestStrangersAndDirectedReceives(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, c := withStranger(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.SourceAddress|fabric.DirectedReceive)
		buf := make([]byte, 100)
		b.must(t, c, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: b.peer, Buf: buf, Tag: 7})
		c.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: c.peer, Buf: []byte("not this"), Tag: 7})
		require.NoError(t, c.await(t, b).Err)
		if provider == "sockets" {
			require.Equal(t, fabric.AddressAny, b.await(t, a).Source)
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: b.peer, Buf: buf, Tag: 7})
		}
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Buf: []byte("this"), Tag: 7})
		done := b.await(t, a)
		require.NoError(t, done.Err)
		require.Equal(t, b.peer, done.Source)
		require.Equal(t, "this", string(buf[:done.Len]))
		require.NoError(t, a.await(t, b).Err)
	})
}
