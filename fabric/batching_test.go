package fabric_test

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// What is posted together with FI_MORE arrives as it does without, in order,
// whether or not the provider makes anything of it.
func TestBatching(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		require.False(t, a.e.Batching(), "on by default, which this provider gains nothing from")
		for _, s := range []*station{a, b} {
			require.NoError(t, s.e.SetBatching(true))
			require.True(t, s.e.Batching())
		}
		const count = 64
		receives, sends := make([]fabric.Op, count), make([]fabric.Op, count)
		for i := range count {
			receives[i] = fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 4), Tag: 7}
			sends[i] = fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Buf: binary.BigEndian.AppendUint32(nil, uint32(i)), Tag: 7}
		}
		b.postAll(t, a, receives)
		a.postAll(t, b, sends)
		for i := range count {
			require.NoError(t, b.await(t, a).Err)
			require.EqualValues(t, i, binary.BigEndian.Uint32(receives[i].Buf))
			require.NoError(t, a.await(t, b).Err)
		}
	})
}

func TestBatchingNeedsAnEnabledEndpoint(t *testing.T) {
	a, _ := stations(t, "sockets", fabric.TaggedMessages)
	e, err := a.domain.OpenEndpoint()
	require.NoError(t, err)
	require.ErrorIs(t, e.SetBatching(true), fabric.ErrInvalid)
	require.NoError(t, e.Close())
	require.ErrorIs(t, e.SetBatching(true), net.ErrClosed)
}
