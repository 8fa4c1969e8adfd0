package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestDataTypes(t *testing.T) {
	type named int32
	require.Equal(t, fabric.Int32, fabric.TypeOf[named]())
	require.Equal(t, fabric.Complex128, fabric.TypeOf[complex128]())
	require.Equal(t, 16, fabric.Complex128.Size())
	require.Equal(t, "FI_INT64", fabric.Int64.String())
	require.Equal(t, "FI_SUM", fabric.Sum.String())
	require.Equal(t, 2, fabric.BFloat16.Size())
	require.Zero(t, fabric.DataType(0).Size())
	require.Equal(t, "no data type", fabric.DataType(0).String())
	require.Equal(t, "FI_BFLOAT16", fabric.BFloat16.String())
	require.Equal(t, "FI_DIFF", fabric.Difference.String())
	require.Equal(t, "no atomic operation", fabric.AtomicOp(0).String())
	require.Equal(t, []byte{1, 0, 2, 0}, fabric.BytesOf([]uint16{1, 2}))
}

func TestMPITag(t *testing.T) {
	require.EqualValues(t, 7<<32|0xfffffffe, fabric.MPITag(-2, 7))
}

// Whoever asks for an atomic that would break the target's memory hears what to ask for.
func TestDeliveredAtomic(t *testing.T) {
	for _, provider := range []string{"sockets", "tcp", "shm"} {
		t.Run(provider, func(t *testing.T) {
			a, b := stations(t, provider, fabric.Atomics)
			memory, remote := shared(t, b, 8)
			op := fabric.Op{
				Kind: fabric.OpAtomic, Flags: fabric.DeliveryComplete, Peer: a.peer, Remote: remote, Buf: fabric.BytesOf([]uint64{3}),
				Atomic: &fabric.Atomic{Type: fabric.TypeOf[uint64](), Operation: fabric.Sum},
			}
			done := a.post(t, b, op)
			if provider == "shm" {
				require.ErrorIs(t, done.Err, fabric.ErrNotSupported)
				require.ErrorContains(t, done.Err, "OpFetch")
				return
			}
			require.NoError(t, done.Err)
			require.NoError(t, a.await(t, b).Err)
			require.Equal(t, fabric.BytesOf([]uint64{3}), memory)
		})
	}
}

// Values of 128 bits that are not where processors have them do not end the peer's process.
func TestMisplacedAtomic(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.Atomics)
		_, remote := shared(t, b, 64)
		for _, kind := range []fabric.DataType{fabric.Int128, fabric.Uint128} {
			op := fabric.Op{Kind: fabric.OpAtomic, Peer: a.peer, Buf: make([]byte, 16), Atomic: &fabric.Atomic{Type: kind, Operation: fabric.Sum}}
			for _, off := range []uint64{1, 8, 17} {
				op.Remote = fabric.Remote{Address: remote.Address + off, Key: remote.Key}
				require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrInvalid)
			}
			op.Remote = remote
			done := a.post(t, b, op)
			if _, err := a.e.AtomicLimit(op.Kind, kind, fabric.Sum); err != nil {
				require.ErrorIs(t, done.Err, fabric.ErrNotSupported)
				continue
			}
			require.NoError(t, done.Err)
			require.NoError(t, a.await(t, b).Err)
		}
		require.NoError(t, a.goesOn(t, b))
	})
}
