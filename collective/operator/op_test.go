package operator_test

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
)

func TestOp(t *testing.T) {
	op := operator.Max[int32]()
	require.Equal(t, "max", op.Name())
	require.Equal(t, "max/int32", op.String())
	require.True(t, op.Commutative())
	require.NoError(t, op.Err())
	e := op.Erased()
	require.Equal(t, []any{"max", "int32", "max/int32", 4, 4, true}, []any{
		e.Name(), e.TypeName(), e.String(), e.ElementSize(), e.Alignment(), e.Commutative(),
	})
	require.NoError(t, e.Err())
	require.NoError(t, op.Apply(nil, nil, []int32{}))
	require.NoError(t, e.Apply(nil, []byte{}, nil))
}

func TestZeroOp(t *testing.T) {
	var op operator.Op[int]
	require.ErrorIs(t, op.Err(), operator.ErrNoOperator)
	require.ErrorIs(t, op.Apply(nil, nil, nil), operator.ErrNoOperator)
	require.ErrorIs(t, op.Erased().Err(), operator.ErrNoOperator)
	require.ErrorIs(t, op.Erased().Apply(nil, nil, nil), operator.ErrNoOperator)
	require.Equal(t, "none/struct {}", op.String())
	require.Equal(t, op, operator.Op[int]{})
	require.Equal(t, []int{0, 1}, []int{op.Erased().ElementSize(), op.Erased().Alignment()})
	require.False(t, op.Commutative())
}

// Making a built-in operator needs no memory, since programs make one for each call.
func TestMakingNeedsNoMemory(t *testing.T) {
	dst, left, right := []float64{0}, []float64{1}, []float64{2}
	d, l, r := raw(t, dst), raw(t, left), raw(t, right)
	halves, places := make([]operator.Float16, 3), make([]operator.Located[operator.BFloat16], 3)
	var err error
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, failure := range []error{
			operator.Sum[float64]().Apply(dst, left, right), sumOf(dst, left, right), operator.Sum[float64]().Erased().Apply(d, l, r),
			operator.Product[operator.Float16]().Apply(halves, halves, halves), operator.MinLoc[operator.BFloat16]().Apply(places, places, places),
			operator.Check[operator.Located[int8]](),
		} {
			if failure != nil {
				err = failure
			}
		}
	}))
	require.NoError(t, err)
	require.Equal(t, 3.0, dst[0])
}

// sumOf makes an operator where its type is not known, as collectives do.
func sumOf[T operator.Number](dst, left, right []T) error {
	return operator.Sum[T]().Apply(dst, left, right)
}

// both are operators that are made in different ways.
var both = []operator.Op[uint32]{
	operator.Sum[uint32](),
	operator.Func("first", false, func(dst, left, _ []uint32) { copy(dst, left) }),
}

func TestLengths(t *testing.T) {
	for _, op := range both {
		for _, lengths := range [][3]int{{1, 2, 2}, {2, 1, 2}, {2, 2, 1}, {0, 0, 1}, {1, 0, 0}, {3, 2, 1}} {
			dst, left, right := make([]uint32, lengths[0]), make([]uint32, lengths[1]), make([]uint32, lengths[2])
			want := &operator.LengthError{Operator: op.String(), Dst: 4 * lengths[0], Left: 4 * lengths[1], Right: 4 * lengths[2]}
			require.Equal(t, want, op.Apply(dst, left, right))
			require.Equal(t, want, op.Erased().Apply(raw(t, dst), raw(t, left), raw(t, right)))
		}
	}
	require.EqualError(t, both[0].Apply(make([]uint32, 1), nil, make([]uint32, 2)),
		"operator: sum/uint32: dst has 4 bytes, left 0 and right 8, want one length")
}

func TestOverlap(t *testing.T) {
	memory := make([]uint32, 10)
	other := make([]uint32, 4)
	for _, op := range both {
		for at := range 7 {
			dst, part := memory[3:7], memory[at:at+4]
			for _, operand := range []string{"left", "right"} {
				left, right := part, other
				if operand == "right" {
					left, right = other, part
				}
				failures := []error{op.Apply(dst, left, right), op.Erased().Apply(raw(t, dst), raw(t, left), raw(t, right))}
				for _, err := range failures {
					if at == 3 {
						require.NoError(t, err)
						continue
					}
					require.Equal(t, &operator.OverlapError{Operator: op.String(), Operand: operand}, err)
				}
			}
			// What is read may overlap.
			require.NoError(t, op.Apply(other, dst, part))
		}
		require.NoError(t, op.Apply(memory[:5], memory[5:], memory[5:]), "side by side")
		require.NoError(t, op.Apply(memory[5:], memory[:5], memory[:5]), "side by side")
	}
	require.EqualError(t, both[0].Apply(memory[1:], memory[:9], memory[1:]),
		"operator: sum/uint32: dst overlaps with a part of left, want the same memory or none of it")
}

func TestViewErrors(t *testing.T) {
	good := raw(t, make([]uint32, 4))
	long := raw(t, make([]uint64, 4))
	for _, op := range both {
		for _, bad := range [][]byte{long[1:17], long[2:18], long[3:19], long[:15], long[:1]} {
			shift := int(uintptr(unsafe.Pointer(&bad[0])) % 4)
			want := &operator.ViewError{Type: "uint32", Length: len(bad), Size: 4, Misaligned: shift, Alignment: 4}
			require.Equal(t, want, op.Erased().Apply(bad, good, good))
			require.Equal(t, want, op.Erased().Apply(good, bad, good))
			require.Equal(t, want, op.Erased().Apply(good, good, bad))
		}
	}
	require.EqualError(t, both[0].Erased().Apply(good, good, long[:15]), "operator: 15 bytes for elements of uint32, want a multiple of 4")
	require.EqualError(t, both[0].Erased().Apply(good, good, long[3:19]),
		"operator: memory for elements of uint32 begins 3 bytes behind a multiple of 4, want none")
}

func TestManyGoroutines(t *testing.T) {
	for _, op := range both {
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() {
				dst, left, right := make([]uint32, 100), make([]uint32, 100), make([]uint32, 100)
				for range 100 {
					if err := op.Apply(dst, left, right); err != nil {
						errs[i] = err
					}
				}
			})
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
}
