package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Flags of a receive that do not go with the rest of it are refused, on every provider alike, and
// nothing is in flight then.
func TestReceiveFlags(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		for what, op := range map[string]fabric.Op{
			"several messages into nothing": {Kind: fabric.OpReceive, Flags: fabric.MultiReceive},
			"several messages into several": {
				Kind: fabric.OpReceive, Flags: fabric.MultiReceive, Vector: [][]byte{make([]byte, 20), make([]byte, 20)},
			},
			"several messages into one of several": {Kind: fabric.OpReceive, Flags: fabric.MultiReceive, Vector: [][]byte{make([]byte, 20)}},
			"discard without a peek":               {Kind: fabric.OpTaggedReceive, Flags: fabric.Discard},
			"discard without a peek or a tag":      {Kind: fabric.OpReceive, Flags: fabric.Discard, Buf: make([]byte, 8)},
		} {
			op.Peer = fabric.AddressAny
			op = b.post(t, a, op)
			require.ErrorIs(t, op.Err, fabric.ErrInvalid, what)
			require.Equal(t, fabric.Failed, op.Result, what)
		}
		require.Zero(t, b.q.InFlight())
	})
}
