package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// swaps says for each comparing operation when the value is swapped.
var swaps = []struct {
	operation fabric.AtomicOp
	holds     func(compare, there int) bool
}{
	{fabric.CompareSwap, func(compare, there int) bool { return compare == there }},
	{fabric.CompareSwapNot, func(compare, there int) bool { return compare != there }},
	{fabric.CompareSwapAtMost, func(compare, there int) bool { return compare <= there }},
	{fabric.CompareSwapBelow, func(compare, there int) bool { return compare < there }},
	{fabric.CompareSwapAtLeast, func(compare, there int) bool { return compare >= there }},
	{fabric.CompareSwapAbove, func(compare, there int) bool { return compare > there }},
}

// A value is swapped where the comparison holds, with what the peer has on the
// right of it.
func TestAtomicComparisons(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Atomics)
		for _, s := range swaps {
			t.Run(s.operation.String(), func(t *testing.T) {
				there, compare := []int{5, 5, 5}, []int{4, 5, 6}
				want := []int{5, 5, 5}
				for i := range want {
					if s.holds(compare[i], there[i]) {
						want[i] = 9
					}
				}
				compareAndSwap(t, a, b, s.operation, values[int32](there), values[int32](compare), values[int32]([]int{9, 9, 9}), values[int32](want))
				compareAndSwap(t, a, b, s.operation, values[uint64](there), values[uint64](compare), values[uint64]([]int{9, 9, 9}), values[uint64](want))
				compareAndSwap(t, a, b, s.operation, values[float64](there), values[float64](compare), values[float64]([]int{9, 9, 9}), values[float64](want))
			})
		}
		t.Run(fabric.MaskedSwap.String(), func(t *testing.T) {
			compareAndSwap(t, a, b, fabric.MaskedSwap, []int32{0x0f0f}, []int32{0x00ff}, []int32{0x3333}, []int32{0x0f33})
		})
	})
}

func values[T int32 | uint64 | float64](of []int) []T {
	var v []T
	for _, n := range of {
		v = append(v, T(n))
	}
	return v
}

func compareAndSwap[T fabric.Number](t *testing.T, a, b *station, operation fabric.AtomicOp, there, compare, send, want []T) {
	t.Helper()
	kind := fabric.TypeOf[T]()
	limit, err := a.e.AtomicLimit(fabric.OpCompare, kind, operation)
	testenv.Need(t, a.info.Provider()+", "+operation.String()+" of "+kind.String(), err)
	require.GreaterOrEqual(t, limit, len(there))
	memory, remote := shared(t, b, 256)
	size := copy(memory, fabric.BytesOf(there))
	before := make([]T, len(there))
	a.must(t, b, fabric.Op{Kind: fabric.OpCompare, Peer: a.peer, Remote: remote, Buf: fabric.BytesOf(send), Atomic: &fabric.Atomic{
		Type: kind, Operation: operation, Compare: fabric.BytesOf(compare), Result: fabric.BytesOf(before),
	}})
	require.NoError(t, a.await(t, b).Err)
	require.Equal(t, there, before, "what was there")
	require.Equal(t, fabric.BytesOf(want), memory[:size])
}
