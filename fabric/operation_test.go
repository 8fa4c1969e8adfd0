package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestWrongOperations(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		for _, op := range []fabric.Op{
			{},
			{Kind: 200},
			{Kind: fabric.OpRemoteWrite},
			{Kind: fabric.OpSend, Vector: make([][]byte, 9)},
			{Kind: fabric.OpSend, Vector: [][]byte{{1}}, Buf: []byte{1}},
			{Kind: fabric.OpSend, Vector: [][]byte{{1}}, Descriptors: make([]fabric.Descriptor, 2)},
			{Kind: fabric.OpInject, Flags: fabric.Fence},
			{Kind: fabric.OpAtomic, Buf: make([]byte, 8)},
			{Kind: fabric.OpAtomic, Buf: make([]byte, 7), Atomic: &fabric.Atomic{Type: fabric.Int64}},
			{Kind: fabric.OpFetch, Buf: make([]byte, 8), Atomic: &fabric.Atomic{Type: fabric.Int64}},
			{Kind: fabric.OpCompare, Buf: make([]byte, 8), Atomic: &fabric.Atomic{Type: fabric.Int64, Result: make([]byte, 8)}},
			{Kind: fabric.OpAtomic, Buf: make([]byte, 8), Atomic: &fabric.Atomic{Type: 99}},
			{Kind: fabric.OpTaggedReceive, Flags: fabric.Claim, Claimed: 12345},
		} {
			got := a.post(t, b, op)
			require.Equal(t, fabric.Failed, got.Result, "%+v", op)
			require.ErrorIs(t, got.Err, fabric.ErrInvalid)
		}
		require.Zero(t, a.q.InFlight())
	})
}
