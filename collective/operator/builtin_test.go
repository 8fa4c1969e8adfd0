package operator_test

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
)

// Types with names of their own.
type (
	small   int8
	count   uint16
	celsius float64
	phasor  complex64
	flag    bool
)

// Each built-in operator with each type does what it does one by one.
func TestBuiltin(t *testing.T) {
	tests := map[string]func(*testing.T){}
	integers[int8](tests)
	integers[int16](tests)
	integers[int32](tests)
	integers[int64](tests)
	integers[int](tests)
	integers[uint8](tests)
	integers[uint16](tests)
	integers[uint32](tests)
	integers[uint64](tests)
	integers[uint](tests)
	floats(tests, func(bits uint64) float32 { return math.Float32frombits(uint32(bits >> 7)) })
	floats(tests, math.Float64frombits)
	complexes(tests, func(bits uint64) complex64 {
		return complex(math.Float32frombits(uint32(bits)), math.Float32frombits(uint32(bits>>32)))
	})
	complexes(tests, func(b uint64) complex128 {
		return complex(math.Float64frombits(b), math.Float64frombits(bits.RotateLeft64(b, 13)))
	})
	halves(tests, float16)
	halves(tests, bfloat16)
	bools[bool](tests)

	for _, e := range operator.All() {
		require.Contains(t, tests, e.String())
	}
	require.Len(t, operator.All(), len(tests))
	integers[small](tests)
	integers[count](tests)
	floats(tests, func(bits uint64) celsius { return celsius(math.Float64frombits(bits)) })
	complexes(tests, func(bits uint64) phasor { return phasor(complex(float32(bits), float32(bits>>32))) })
	bools[flag](tests)
	require.Len(t, tests, len(operator.All())+2*9+6+2+3)

	for name, test := range tests {
		t.Run(name, test)
	}
}

func add[T any](tests map[string]func(*testing.T), name string, s subject[T]) {
	if _, there := tests[s.op.String()]; there || !strings.HasPrefix(s.op.String(), name+"/") || s.op.Name() != name {
		panic(s.op.String() + " is there twice, or not " + name)
	}
	tests[s.op.String()] = s.test
}

func integers[T operator.Integer](tests map[string]func(*testing.T)) {
	s := subject[T]{any: func(bits uint64) T { return T(bits) }, same: func(a, b T) bool { return a == b }, associative: true}
	for _, v := range []uint64{
		0, 1, 2, 3, 100, 0x7e, 0x7f, 0x80, 0x81, 0xff, 0x7fff, 0x8000, 0x8001, 0xffff, 1<<31 - 1, 1 << 31, 1<<32 - 1,
		1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 2, 1<<64 - 1, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa,
	} {
		s.edges = append(s.edges, T(v))
	}
	// With numbers that have no end, of which the lowest bits are left.
	exactly := func(f func(z, x, y *big.Int) *big.Int) func(l, r T) T {
		return func(l, r T) T {
			z := f(new(big.Int), large(l), large(r))
			return T(z.And(z, new(big.Int).SetUint64(1<<64-1)).Uint64())
		}
	}
	for _, c := range []struct {
		name string
		op   operator.Op[T]
		want func(l, r T) T
	}{
		{"sum", operator.Sum[T](), exactly((*big.Int).Add)},
		{"product", operator.Product[T](), exactly((*big.Int).Mul)},
		{"and", operator.And[T](), exactly((*big.Int).And)},
		{"or", operator.Or[T](), exactly((*big.Int).Or)},
		{"xor", operator.Xor[T](), exactly((*big.Int).Xor)},
		{"min", operator.Min[T](), func(l, r T) T { return choose(l < r, l, r) }},
		{"max", operator.Max[T](), func(l, r T) T { return choose(l > r, l, r) }},
	} {
		s.op, s.want = c.op, c.want
		add(tests, c.name, s)
	}
	located(tests, s, func(a, b T) bool { return a < b }, func(T) bool { return false })
}

func large[T operator.Integer](v T) *big.Int {
	if v < 0 {
		return big.NewInt(int64(v))
	}
	return new(big.Int).SetUint64(uint64(v))
}

func choose[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

func floats[T ~float32 | ~float64](tests map[string]func(*testing.T), number func(bits uint64) T) {
	isNaN := func(v T) bool { return math.IsNaN(float64(v)) }
	less := func(a, b T) bool { return a < b }
	s := subject[T]{any: number, same: func(a, b T) bool {
		return isNaN(a) && isNaN(b) || a == b && math.Signbit(float64(a)) == math.Signbit(float64(b))
	}}
	for _, v := range []float64{
		0, 1, 3, 0.1, 1e10, math.Pi, 1 << 24, 1 << 53, math.MaxFloat32, math.MaxFloat64, math.SmallestNonzeroFloat32,
		0x1p-126, math.SmallestNonzeroFloat64, 0x1p-1022, math.Inf(1), math.NaN(),
	} {
		s.edges = append(s.edges, T(v), T(math.Copysign(v, -1)))
	}
	extreme := func(first func(a, b T) bool) func(l, r T) T {
		return func(l, r T) T {
			switch {
			case isNaN(l) || isNaN(r):
				return T(math.NaN())
			case l == r: // -0 and 0 are
				return choose(math.Signbit(float64(l)) == first(-1, 1), l, r)
			}
			return choose(first(l, r), l, r)
		}
	}
	s.op, s.want = operator.Sum[T](), func(l, r T) T { return T(float64(l) + float64(r)) }
	add(tests, "sum", s)
	s.op, s.want = operator.Product[T](), func(l, r T) T { return T(float64(l) * float64(r)) }
	add(tests, "product", s)
	s.associative = true
	s.op, s.want = operator.Min[T](), extreme(less)
	add(tests, "min", s)
	s.op, s.want = operator.Max[T](), extreme(func(a, b T) bool { return a > b })
	add(tests, "max", s)
	located(tests, s, less, isNaN)
}

func complexes[T ~complex64 | ~complex128](tests map[string]func(*testing.T), number func(bits uint64) T) {
	same := func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Float64bits(a) == math.Float64bits(b)
	}
	s := subject[T]{any: number, same: func(a, b T) bool {
		return same(real(complex128(a)), real(complex128(b))) && same(imag(complex128(a)), imag(complex128(b)))
	}}
	parts := []float64{0, math.Copysign(0, -1), 1, -3, 0.1, math.MaxFloat32, -math.SmallestNonzeroFloat64, math.Inf(1), math.NaN()}
	for _, re := range parts {
		for _, im := range parts {
			s.edges = append(s.edges, T(complex(re, im)))
		}
	}
	s.op, s.want = operator.Sum[T](), func(l, r T) T { return T(complex128(l) + complex128(r)) }
	add(tests, "sum", s)
	s.op, s.want = operator.Product[T](), func(l, r T) T { return T(complex128(l) * complex128(r)) }
	add(tests, "product", s)
}

func bools[T ~bool](tests map[string]func(*testing.T)) {
	s := subject[T]{
		edges: []T{false, true}, any: func(bits uint64) T { return bits&4 == 0 },
		same: func(a, b T) bool { return a == b }, associative: true,
	}
	s.op, s.want = operator.LogicalAnd[T](), func(l, r T) T { return l && r }
	add(tests, "logical-and", s)
	s.op, s.want = operator.LogicalOr[T](), func(l, r T) T { return l || r }
	add(tests, "logical-or", s)
	s.op, s.want = operator.LogicalXor[T](), func(l, r T) T { return l != r }
	add(tests, "logical-xor", s)
}

// located adds MinLoc and MaxLoc over values that are known.
func located[T operator.Real](tests map[string]func(*testing.T), values subject[T], less func(a, b T) bool, isNaN func(T) bool) {
	indexes := []int64{0, 3, -1, math.MaxInt64, math.MinInt64}
	s := subject[operator.Located[T]]{
		any: func(bits uint64) operator.Located[T] {
			return operator.Located[T]{Value: values.any(bits), Index: int64(bits % 5)}
		},
		same: func(a, b operator.Located[T]) bool {
			return a.Index == b.Index && isNaN(a.Value) == isNaN(b.Value) && !less(a.Value, b.Value) && !less(b.Value, a.Value)
		},
		associative: true,
	}
	for i, v := range values.edges {
		for k := range 2 {
			s.edges = append(s.edges, operator.Located[T]{Value: v, Index: indexes[(i+k)%len(indexes)]})
		}
	}
	extreme := func(first func(a, b T) bool) func(l, r operator.Located[T]) operator.Located[T] {
		return func(l, r operator.Located[T]) operator.Located[T] {
			switch {
			case isNaN(l.Value) != isNaN(r.Value):
				return choose(isNaN(l.Value), l, r)
			case first(l.Value, r.Value):
				return l
			case first(r.Value, l.Value):
				return r
			}
			return choose(l.Index <= r.Index, l, r)
		}
	}
	s.op, s.want = operator.MinLoc[T](), extreme(less)
	add(tests, "minloc", s)
	s.op, s.want = operator.MaxLoc[T](), extreme(func(a, b T) bool { return less(b, a) })
	add(tests, "maxloc", s)
}

// A byte that is no bool does not become another that is none.
func TestLogicalWritesBools(t *testing.T) {
	left, right := make([]byte, 17), make([]byte, 17)
	for i := range left {
		left[i], right[i] = byte(3*i+2), byte(255-i)
	}
	for _, op := range []operator.Op[bool]{operator.LogicalAnd[bool](), operator.LogicalOr[bool](), operator.LogicalXor[bool]()} {
		dst := make([]byte, len(left))
		require.NoError(t, op.Erased().Apply(dst, left, right))
		for _, b := range dst {
			require.LessOrEqual(t, b, byte(1))
		}
	}
}

func TestAll(t *testing.T) {
	names := map[string]operator.Erased{}
	for _, e := range operator.All() {
		names[e.String()] = e
		require.NoError(t, e.Err())
		require.True(t, e.Commutative())
	}
	require.Len(t, names, 10*9+2*6+2*6+2*2+3)
	for name, size := range map[string]int{
		"sum/float64": 8, "max/int8": 1, "product/complex128": 16, "min/Float16": 2, "sum/BFloat16": 2,
		"xor/uint16": 2, "logical-or/bool": 1, "minloc/Located[float32]": 16, "maxloc/Located[Float16]": 16,
	} {
		require.Contains(t, names, name)
		require.Equal(t, size, names[name].ElementSize(), name)
		require.LessOrEqual(t, names[name].Alignment(), 8, name)
	}
	require.Equal(t, "operator.Float16", names["min/Float16"].TypeName())
}
