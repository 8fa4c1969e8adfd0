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

// On shm a MultiReceive has its first message alone, also one that does not fit, however long.
func TestMultiReceiveOfLongMessages(t *testing.T) {
	a, b := stations(t, "shm", fabric.Messages|fabric.MultiReceiveBuffers)
	for _, size := range []int{21, 4097, 100_000, 20} {
		memory := make([]byte, 1<<17)
		b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: memory[:20:20], Flags: fabric.MultiReceive, Context: 3})
		sent := make([]byte, size)
		for i := range sent {
			sent[i] = byte(i + 1)
		}
		a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: sent})
		c := b.await(t, a)
		require.True(t, c.Released)
		require.EqualValues(t, 3, c.Context)
		if size > 20 {
			require.ErrorIs(t, c.Err, fabric.ErrTruncated)
			var told *fabric.Error
			require.ErrorAs(t, c.Err, &told)
			require.Equal(t, size-20, told.Excess)
		} else {
			require.NoError(t, c.Err)
			require.Equal(t, sent, memory[:c.Len])
		}
		require.Equal(t, make([]byte, len(memory)-20), memory[20:])
		require.NoError(t, a.await(t, b).Err)
	}
	require.Zero(t, b.q.InFlight())
}
