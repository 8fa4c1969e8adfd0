package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A context of a scalable endpoint has the atomics that its provider has, and
// refuses the others.
func TestAtomicsOfContexts(t *testing.T) {
	const bits = 1
	info := datagramsFor(t, "sockets", fabric.Messages|fabric.Atomics|fabric.NamedReceiveContexts)
	inProcess(t, func(t *testing.T) {
		c := openCorner(t, info)
		several, err := info.WithContexts(2, 2)
		require.NoError(t, err)
		v := c.vector(t, fabric.AddressVectorConfig{ReceiveBits: bits})
		s, err := c.domain.OpenScalableEndpoint(several)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Enable(v, c.events))
		sends, receives := c.queue(t), c.queue(t)
		x, err := s.OpenSend(1)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, x.Close()) })
		require.NoError(t, x.Enable(sends))
		r, err := s.OpenReceive(0)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		require.NoError(t, r.Enable(receives))
		peer := insert(t, v, s)

		there, before := []uint64{40}, []uint64{0}
		region, err := c.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, fabric.BytesOf(there))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, region.Close()) })
		description, err := region.Remote()
		require.NoError(t, err)
		remote, err := description.At(0, 8)
		require.NoError(t, err)
		ops := []fabric.Op{{
			Kind: fabric.OpFetch, Peer: peer.Context(0, bits), Buf: fabric.BytesOf([]uint64{2}), Remote: remote,
			Atomic: &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: fabric.BytesOf(before)},
		}, {
			Kind: fabric.OpAtomic, Peer: peer.Context(0, bits), Buf: fabric.BytesOf([]float64{2}), Remote: remote,
			Atomic: &fabric.Atomic{Type: fabric.Float64, Operation: fabric.BitOr},
		}}
		done := make([]fabric.Completion, 1)
		n, err := x.Turn(ops, done, 0)
		require.NoError(t, err)
		require.NoError(t, ops[0].Err)
		require.ErrorIs(t, ops[1].Err, fabric.ErrNotSupported)
		for n == 0 {
			n, err = x.TurnWait(nil, done, 100)
			require.NoError(t, err)
		}
		require.NoError(t, done[0].Err)
		require.EqualValues(t, 42, there[0])
		require.EqualValues(t, 40, before[0])
	})
}
