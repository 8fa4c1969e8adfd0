package fabric_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// arithmetic is what each atomic operation does to a value there, with a value
// from here; complex and floating types have fewer.
func arithmetic[T fabric.Number](there, here T, op fabric.AtomicOp) (T, bool) {
	truth := func(b bool) T {
		if b {
			return 1
		}
		return 0
	}
	switch op {
	case fabric.Sum:
		return there + here, true
	case fabric.Product:
		return there * here, true
	case fabric.LogicalOr:
		return truth(there != 0 || here != 0), true
	case fabric.LogicalAnd:
		return truth(there != 0 && here != 0), true
	case fabric.LogicalXor:
		return truth((there != 0) != (here != 0)), true
	case fabric.AtomicWrite:
		return here, true
	case fabric.AtomicRead:
		return there, true
	}
	return there, false
}

func testAtomics[T fabric.Number](t *testing.T, a, b *station) int {
	kind := fabric.TypeOf[T]()
	memory, remote := shared(t, b, 256)
	there := func() []T { return valuesOf[T](memory, 2) }
	tried := 0
	for op := fabric.Min; op <= fabric.AtomicWrite; op++ {
		want0, known := arithmetic[T](3, 2, op)
		want1, _ := arithmetic[T](0, 5, op)
		if !known {
			continue
		}
		for _, k := range []fabric.OpKind{fabric.OpAtomic, fabric.OpFetch} {
			limit, err := a.e.AtomicLimit(k, kind, op)
			if errors.Is(err, fabric.ErrNotSupported) || (op == fabric.AtomicRead && k == fabric.OpAtomic) {
				continue
			}
			require.NoError(t, err)
			require.GreaterOrEqual(t, limit, 2)
			early, err := a.domain.AtomicLimit(k, kind, op)
			require.NoError(t, err)
			require.Positive(t, early)
			copy(there(), []T{3, 0})
			here, before := []T{2, 5}, []T{77, 77}
			atomic := &fabric.Atomic{Type: kind, Operation: op}
			post := fabric.Op{Kind: k, Peer: a.peer, Remote: remote, Atomic: atomic, Buf: fabric.BytesOf(here), Flags: fabric.DeliveryComplete}
			if k == fabric.OpFetch {
				atomic.Result = fabric.BytesOf(before)
				post.Flags = 0
			}
			switch op {
			case fabric.AtomicRead:
				post.Buf, atomic.Count = nil, 2
			case fabric.Sum:
				// In two parts.
				post.Buf, post.Vector = nil, [][]byte{fabric.BytesOf(here[:1]), fabric.BytesOf(here[1:])}
			}
			a.must(t, b, post)
			require.NoError(t, a.await(t, b).Err, "%v %v %v", k, kind, op)
			require.Equal(t, []T{want0, want1}, there(), "%v %v %v", k, kind, op)
			if k == fabric.OpFetch {
				require.Equal(t, []T{3, 0}, before, "%v %v %v", k, kind, op)
			}
			tried++
		}
	}
	if _, err := a.e.AtomicLimit(fabric.OpCompare, kind, fabric.CompareSwap); err == nil {
		for _, equal := range []bool{true, false} {
			copy(there(), []T{3, 4})
			compare, before := []T{3, 4}, []T{77, 77}
			want := []T{8, 9}
			if !equal {
				compare, want = []T{3, 5}, []T{8, 4}
			}
			a.must(t, b, fabric.Op{Kind: fabric.OpCompare, Peer: a.peer, Remote: remote, Buf: fabric.BytesOf([]T{8, 9}), Atomic: &fabric.Atomic{
				Type: kind, Operation: fabric.CompareSwap, Compare: fabric.BytesOf(compare), Result: fabric.BytesOf(before),
			}})
			require.NoError(t, a.await(t, b).Err)
			require.Equal(t, want, there(), "compare and swap of %v, equal %v", kind, equal)
			require.Equal(t, []T{3, 4}, before)
			tried++
		}
	}
	return tried
}

// Every data type and operation that the provider has gives what Go gives.
func TestAtomics(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Atomics)
		for _, one := range []struct {
			name string
			test func(t *testing.T, a, b *station) int
		}{
			{"int8", testAtomics[int8]},
			{"uint8", testAtomics[uint8]},
			{"int16", testAtomics[int16]},
			{"uint16", testAtomics[uint16]},
			{"int32", testAtomics[int32]},
			{"uint32", testAtomics[uint32]},
			{"int64", testAtomics[int64]},
			{"uint64", testAtomics[uint64]},
			{"float32", testAtomics[float32]},
			{"float64", testAtomics[float64]},
			{"complex64", testAtomics[complex64]},
			{"complex128", testAtomics[complex128]},
		} {
			t.Run(one.name, func(t *testing.T) {
				if one.test(t, a, b) == 0 {
					testenv.Need(t, fmt.Sprintf("atomics of %s on %s", one.name, provider), fabric.ErrNotSupported)
				}
			})
		}
		require.Zero(t, a.q.InFlight())
	})
}

func TestDataTypes(t *testing.T) {
	type named int32
	require.Equal(t, fabric.Int32, fabric.TypeOf[named]())
	require.Equal(t, fabric.Complex128, fabric.TypeOf[complex128]())
	require.Equal(t, 16, fabric.Complex128.Size())
	require.Equal(t, "FI_INT64", fabric.Int64.String())
	require.Equal(t, "FI_SUM", fabric.Sum.String())
	require.Equal(t, []byte{1, 0, 2, 0}, fabric.BytesOf([]uint16{1, 2}))
}

func TestMPITag(t *testing.T) {
	require.EqualValues(t, 7<<32|0xfffffffe, fabric.MPITag(-2, 7))
}
