package operator_test

import (
	"math"
	"math/big"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/operator"
)

// half is a float of 16 bits and, apart from what is tested, what its bits mean.
type half[H operator.Float16 | operator.BFloat16] struct {
	fraction int // bits of it
	bias     int // of the exponent
	encode   func(float32) H
	decode   func(H) float32
}

var (
	float16  = half[operator.Float16]{10, 15, operator.ToFloat16, operator.Float16.Float32}
	bfloat16 = half[operator.BFloat16]{7, 127, operator.ToBFloat16, operator.BFloat16.Float32}
)

const negative = 1 << 15

func (h half[H]) infinity() H { return 1<<15 - 1<<h.fraction }

func (h half[H]) quiet() H { return 1 << (h.fraction - 1) }

func (h half[H]) isNaN(bits H) bool { return bits&^negative > h.infinity() }

// value is what bits mean that are not negative, nor a NaN. Infinity goes on where the
// numbers end.
func (h half[H]) value(bits H) float64 {
	exponent, fraction := int(bits)>>h.fraction, int(bits)&(1<<h.fraction-1)
	if exponent > 0 {
		fraction += 1 << h.fraction
	} else {
		exponent = 1
	}
	return math.Ldexp(float64(fraction), exponent-h.bias-h.fraction)
}

// number is what any bits mean.
func (h half[H]) number(bits H) float64 {
	v := math.NaN()
	switch magnitude := bits &^ negative; {
	case magnitude < h.infinity():
		v = h.value(magnitude)
	case magnitude == h.infinity():
		v = math.Inf(1)
	}
	if bits&negative != 0 {
		return -v
	}
	return v
}

// round finds the nearest to a number that is exact, by looking at its neighbours. The
// sign is that of like, which is a number or not, as the result is.
func (h half[H]) round(exact *big.Float, like float64) H {
	if math.IsNaN(like) {
		return h.infinity() | h.quiet()
	}
	result := h.infinity()
	if !math.IsInf(like, 0) {
		x := new(big.Float).Abs(exact)
		// The first that is greater.
		above := H(sort.Search(int(h.infinity()), func(i int) bool { return big.NewFloat(h.value(H(i))).Cmp(x) > 0 }))
		below := above - 1
		middle := new(big.Float).SetPrec(1000).Add(big.NewFloat(h.value(below)), big.NewFloat(h.value(above)))
		order := new(big.Float).SetPrec(1000).Mul(x, big.NewFloat(2)).Cmp(middle)
		result = choose(order > 0 || order == 0 && below%2 == 1, above, below)
	}
	if math.Signbit(like) {
		result |= negative
	}
	return result
}

// Every value is what IEEE 754 says, and survives the way to float32 and back.
func TestHalvesConvert(t *testing.T) {
	t.Run("float16", func(t *testing.T) { testConvert(t, float16) })
	t.Run("bfloat16", func(t *testing.T) { testConvert(t, bfloat16) })
}

func testConvert[H operator.Float16 | operator.BFloat16](t *testing.T, h half[H]) {
	for i := range 1 << 16 {
		bits := H(i)
		f := h.decode(bits)
		if h.isNaN(bits) {
			// Quiet, with the sign and, on the way to float32, the payload.
			want := uint32(bits&negative)<<16 | 0xff<<23 | 1<<22 | uint32(bits)<<(23-h.fraction)&(1<<23-1)
			back := h.encode(f)
			if math.Float32bits(f) != want || !h.isNaN(back) || back&h.quiet() == 0 || back&negative != bits&negative {
				require.Failf(t, "wrong", "%#x became %#x and %#x", bits, math.Float32bits(f), back)
			}
			continue
		}
		if math.Float64bits(float64(f)) != math.Float64bits(h.number(bits)) || h.encode(f) != bits {
			require.Failf(t, "wrong", "%#x became %v and %#x", bits, f, h.encode(f))
		}
	}
}

// Around the middle between two neighbours, what is below goes down, what is above
// goes up, and the middle itself goes to the even one. Behind the last is infinity.
func TestHalvesRound(t *testing.T) {
	t.Run("float16", func(t *testing.T) { testRound(t, float16) })
	t.Run("bfloat16", func(t *testing.T) { testRound(t, bfloat16) })
}

func testRound[H operator.Float16 | operator.BFloat16](t *testing.T, h half[H]) {
	for below := range h.infinity() {
		above := below + 1
		middle := float32((h.value(below) + h.value(above)) / 2)
		even := below + below%2
		for _, c := range []struct {
			f    float32
			want H
		}{
			{middle, even},
			{math.Nextafter32(middle, 0), below},
			{math.Nextafter32(middle, float32(math.Inf(1))), above},
		} {
			if got := h.encode(c.f); got != c.want || h.encode(-c.f) != c.want|negative {
				require.Failf(t, "wrong", "%v (%#x) became %#x and %#x, want %#x", c.f, math.Float32bits(c.f), got, h.encode(-c.f), c.want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if math.IsNaN(float64(f)) {
			require.True(t, h.isNaN(h.encode(f)))
			return
		}
		exact := new(big.Float)
		if !math.IsInf(float64(f), 0) {
			exact.SetFloat64(float64(f))
		}
		require.Equal(t, h.round(exact, float64(f)), h.encode(f), "%v", f)
	})
	for _, payload := range []uint32{1, 1 << 12, 1 << 13, 1 << 15, 1 << 16, 1 << 21, 1 << 22, 1<<23 - 1} {
		for _, sign := range []uint32{0, 1 << 31} {
			got := h.encode(math.Float32frombits(sign | 0xff<<23 | payload))
			require.True(t, h.isNaN(got) && got&h.quiet() != 0 && uint32(got&negative)<<16 == sign, "a NaN with payload %#x became %#x", payload, got)
		}
	}
}

func halves[H operator.Float16 | operator.BFloat16](tests map[string]func(*testing.T), h half[H]) {
	s := subject[H]{any: func(bits uint64) H { return H(bits >> 9) }, same: func(a, b H) bool {
		return a == b || h.isNaN(a) && h.isNaN(b)
	}}
	one := H(h.bias) << h.fraction
	for _, bits := range []H{
		0, 1, 2, h.quiet(), 1<<h.fraction - 1, 1 << h.fraction, 1<<h.fraction + 1, one - 1, one, one + 1, one + 1<<h.fraction,
		one + h.quiet(), one / 2, one + one/2, h.infinity() - 1, h.infinity() - 1<<h.fraction, h.infinity(),
		h.infinity() + 1, h.infinity() | h.quiet(), 1<<15 - 1,
	} {
		s.edges = append(s.edges, bits, bits|negative)
	}
	s.op, s.want = operator.Sum[H](), h.sum
	add(tests, "sum", s)
	s.op, s.want = operator.Product[H](), h.product
	add(tests, "product", s)
	s.associative = true
	extreme := func(f func(x, y float64) float64) func(l, r H) H {
		return func(l, r H) H {
			if h.isNaN(l) || h.isNaN(r) {
				return h.infinity() | h.quiet()
			}
			v := f(h.number(l), h.number(r))
			return choose(math.Float64bits(v) == math.Float64bits(h.number(l)), l, r)
		}
	}
	s.op, s.want = operator.Min[H](), extreme(math.Min)
	add(tests, "min", s)
	s.op, s.want = operator.Max[H](), extreme(math.Max)
	add(tests, "max", s)
	located(tests, s, func(a, b H) bool { return h.number(a) < h.number(b) }, h.isNaN)
}

// sum and product are rounded once. All that float64 is asked for is the sign, and
// whether the result is a number.
func (h half[H]) sum(l, r H) H {
	a, b := h.number(l), h.number(r)
	return h.round(exactly(a, b, (*big.Float).Add), a+b)
}

func (h half[H]) product(l, r H) H {
	a, b := h.number(l), h.number(r)
	return h.round(exactly(a, b, (*big.Float).Mul), a*b)
}

func exactly(a, b float64, f func(z, x, y *big.Float) *big.Float) *big.Float {
	for _, v := range []float64{a, b} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	return f(new(big.Float).SetPrec(1000), big.NewFloat(a), big.NewFloat(b))
}

// A few values with many others.
func TestHalvesArithmetic(t *testing.T) {
	t.Run("float16", func(t *testing.T) { testArithmetic(t, float16) })
	t.Run("bfloat16", func(t *testing.T) { testArithmetic(t, bfloat16) })
}

func testArithmetic[H operator.Float16 | operator.BFloat16](t *testing.T, h half[H]) {
	const stride = 37
	one := H(h.bias) << h.fraction
	for _, v := range []H{1, 1<<h.fraction - 1, one/2 + 1, one + 3, one + one/2 + 7, h.infinity() - 1} {
		var left, right []H
		for i := 0; i < 1<<16; i += stride {
			left, right = append(left, H(i)), append(right, v)
		}
		dst := make([]H, len(left))
		for _, c := range []struct {
			op   operator.Op[H]
			want func(l, r H) H
		}{{operator.Sum[H](), h.sum}, {operator.Product[H](), h.product}} {
			require.NoError(t, c.op.Apply(dst, left, right))
			for i, got := range dst {
				if want := c.want(left[i], v); got != want && !(h.isNaN(got) && h.isNaN(want)) {
					require.Failf(t, "wrong", "%v of %#x and %#x is %#x, want %#x", c.op, left[i], v, got, want)
				}
			}
		}
	}
}

func TestHalvesPrint(t *testing.T) {
	require.Equal(t, "1.5", operator.ToFloat16(1.5).String())
	require.Equal(t, "-0.099975586", operator.ToFloat16(-0.1).String())
	require.Equal(t, "+Inf", operator.ToFloat16(65520).String())
	require.Equal(t, "65504", operator.ToFloat16(65519).String())
	require.Equal(t, "NaN", operator.ToBFloat16(float32(math.NaN())).String())
	require.Equal(t, "3.140625", operator.ToBFloat16(math.Pi).String())
}
