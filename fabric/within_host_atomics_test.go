package fabric_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Within a host, atomic operations have as many values as shm has room for, and all of those are changed.
func TestAtomicsWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		if !withinHost(t, "atomics", "^TestAtomicsWithinHost$") {
			return
		}
		a, b := stations(t, "efa", fabric.Messages|fabric.Atomics)
		memory, remote := shared(t, b, 1<<16)
		for _, kind := range []fabric.OpKind{fabric.OpAtomic, fabric.OpFetch, fabric.OpCompare} {
			what := fabric.BitOr
			if kind == fabric.OpCompare {
				what = fabric.CompareSwap
			}
			most, err := a.e.AtomicLimit(kind, fabric.Uint64, what)
			require.NoError(t, err)
			early, err := a.domain.AtomicLimit(kind, fabric.Uint64, what)
			require.NoError(t, err)
			require.LessOrEqual(t, most, early)
			clear(memory)
			op := fabric.Op{Kind: kind, Peer: a.peer, Remote: remote, Buf: bytes.Repeat([]byte{7}, 8*most)}
			op.Atomic = &fabric.Atomic{Type: fabric.Uint64, Operation: what, Result: make([]byte, 8*most), Compare: make([]byte, 8*most)}
			op.Flags = fabric.TransmitComplete
			a.must(t, b, op)
			require.NoError(t, a.await(t, b).Err)
			require.Eventually(t, func() bool {
				a.turn(t, nil)
				b.turn(t, nil)
				return bytes.Equal(op.Buf, memory[:len(op.Buf)])
			}, 30*time.Second, time.Millisecond, "%v of %d values", kind, most)
			require.Equal(t, len(memory)-len(op.Buf), bytes.Count(memory[len(op.Buf):], []byte{0}))
			op.Buf = make([]byte, 8*(most+1))
			op.Atomic.Result, op.Atomic.Compare = make([]byte, len(op.Buf)), make([]byte, len(op.Buf))
			require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrInvalid)
		}
		sum := fabric.Op{Kind: fabric.OpAtomic, Flags: fabric.DeliveryComplete, Peer: a.peer, Remote: remote, Buf: make([]byte, 8)}
		sum.Atomic = &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum}
		err := a.post(t, b, sum).Err
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		require.ErrorContains(t, err, "OpFetch")
	})
}
