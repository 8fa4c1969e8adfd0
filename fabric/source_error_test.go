package fabric_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A message of an unknown sender is an error, and was received all the same.
func TestUnknownSender(t *testing.T) {
	a, b := stations(t, "sockets", fabric.Messages|fabric.TaggedMessages|fabric.MultiReceiveBuffers)
	for _, op := range []fabric.Op{
		{Kind: fabric.OpTaggedReceive, Context: 5},
		{Kind: fabric.OpReceive, Context: 5, Flags: fabric.MultiReceive},
	} {
		op.Peer, op.Buf = fabric.AddressAny, make([]byte, 4096)
		op = b.must(t, a, op)
		before := b.q.InFlight()
		c, ok := fabric.UnknownSender(b.q, op.Token, 20)
		require.True(t, ok)
		require.ErrorIs(t, c.Err, syscall.EADDRNOTAVAIL)
		require.EqualValues(t, 5, c.Context)
		require.Equal(t, 20, c.Len)
		require.Equal(t, fabric.AddressAny, c.Source)
		require.False(t, c.Released)
		if op.Flags&fabric.MultiReceive == 0 {
			require.EqualValues(t, 3, c.Tag)
			require.Equal(t, before-1, b.q.InFlight())
		} else {
			// What is left of the buffer takes others.
			require.Equal(t, before, b.q.InFlight())
		}
	}
}
