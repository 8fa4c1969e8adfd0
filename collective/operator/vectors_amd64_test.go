package operator

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/internal/testenv"
)

// Sums by vectors are those of the loops in Go, bit by bit, for any bits, length and place:
// all ranks are to have the same, whatever their processors can do. Of two NaNs it is not
// specified whose bits a float of 32 bits or more has.
func TestVectorsAreAsLoops(t *testing.T) {
	needVectors(t)
	sumsAgree[int8](t)
	sumsAgree[uint8](t)
	sumsAgree[int16](t)
	sumsAgree[uint16](t)
	sumsAgree[int32](t)
	sumsAgree[uint32](t)
	sumsAgree[int64](t)
	sumsAgree[uint64](t)
	sumsAgree[int](t)
	sumsAgree[uint](t)
	sumsAgree[Float16](t)
	sumsAgree[BFloat16](t)
	sumsAgree[float32](t)
	sumsAgree[float64](t)
	sumsAgree[complex64](t)
	sumsAgree[complex128](t)
	type named float32
	sumsAgree[named](t)
}

// Every Float16 and BFloat16 with some of all kinds, in either place.
func TestVectorsOfHalves(t *testing.T) {
	needVectors(t)
	some := []uint16{0, 1, 2, 0x3ff, 0x400, 0x401, 0x3c00, 0x3c01, 0x3f80, 0x3f81, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff}
	for _, other := range some {
		for _, sign := range []uint16{0, negativeHalf} {
			halvesAgree[Float16](t, Float16(other|sign), &formatFloat16)
			halvesAgree[BFloat16](t, BFloat16(other|sign), &formatBFloat16)
		}
	}
}

func needVectors(t *testing.T) {
	t.Helper()
	var err error
	if !hasVectors {
		err = errors.New("the processor has no AVX2")
	}
	testenv.Need(t, "vectors", err)
}

// What is longer than a piece is added whole.
func TestVectorsInPieces(t *testing.T) {
	needVectors(t)
	inPieces[uint8](t)
	inPieces[float32](t)
	inPieces[complex128](t)
}

func inPieces[T Number](t *testing.T) {
	piece := mostAtOnce / int(unsafe.Sizeof(*new(T)))
	for _, n := range []int{piece - 1, piece, piece + 1, 2*piece + 77} {
		left, right, got, want := make([]T, n), make([]T, n), make([]T, n), make([]T, n)
		bits := as[uint8](left)
		for i := range bits {
			bits[i] = uint8(i*7) & 0x3f
		}
		copy(right, left)
		sum(got, left, right)
		withoutVectors(func() { sum(want, left, right) })
		require.Equal(t, want, got, "%d elements", n)
	}
}

const negativeHalf = 1 << 15

func halvesAgree[H Float16 | BFloat16](t *testing.T, other H, f *format) {
	all, same := make([]H, 1<<16), make([]H, 1<<16)
	for i := range all {
		all[i], same[i] = H(i), other
	}
	for _, operands := range [][2][]H{{all, same}, {same, all}} {
		got, want := make([]H, len(all)), make([]H, len(all))
		sum(got, operands[0], operands[1])
		withoutVectors(func() { sum(want, operands[0], operands[1]) })
		for i := range got {
			l, r := operands[0][i], operands[1][i]
			if f.isNaN(uint16(l)) && f.isNaN(uint16(r)) {
				require.True(t, f.isNaN(uint16(got[i])) && uint16(got[i])&f.quiet != 0, "%T %#x + %#x is %#x", l, uint16(l), uint16(r), uint16(got[i]))
				continue
			}
			if got[i] != want[i] {
				require.Equal(t, uint16(want[i]), uint16(got[i]), "%T %#x + %#x", l, uint16(l), uint16(r))
			}
		}
	}
}

func withoutVectors(f func()) {
	hasVectors = false
	defer func() { hasVectors = true }()
	f()
}

func sumsAgree[T Number](t *testing.T) {
	t.Run(reflect.TypeFor[T]().String(), func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			const most = 1000
			size := int(unsafe.Sizeof(*new(T)))
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			bits := make([]uint64, 3*most*2)
			for i := range bits {
				bits[i] = random.Uint64()
				if random.IntN(8) == 0 {
					// Infinities, NaN and what has no bit of the exponent, of floats of any size.
					bits[i] |= 0x7ff07f807c007f80 >> random.IntN(2)
				} else if random.IntN(8) == 0 {
					bits[i] &= 0x800f807f83ff807f
				}
			}
			memory := as[T](bits)[:3*most]
			n := rapid.IntRange(0, most-8).Draw(t, "length")
			from := rapid.IntRange(0, 8).Draw(t, "from")
			left, right := memory[from:][:n], memory[most+rapid.IntRange(0, 8).Draw(t, "other from"):][:n]
			before := append([]T(nil), memory...)
			want := make([]T, n)
			withoutVectors(func() { sum(want, left, right) })
			dst := memory[2*most:][:n]
			switch rapid.SampledFrom([]string{"apart", "left", "right"}).Draw(t, "result") {
			case "left":
				dst = left
			case "right":
				dst = right
			}
			sum(dst, left, right)
			for i := range dst {
				if got := dst[i]; !sameOrNaN(got, want[i]) {
					t.Fatalf("element %d of %d, of %d bytes: %v, and not %v", i, n, size, got, want[i])
				}
			}
			for i := range memory {
				inside := uintptr(unsafe.Pointer(&memory[i]))-uintptr(unsafe.Pointer(unsafe.SliceData(dst))) < uintptr(n*size)
				if !inside && !sameBits(memory[i], before[i]) {
					t.Fatalf("element %d, which is none of the result, has changed", i)
				}
			}
		})
	})
}

func sameBits[T any](a, b T) bool {
	return string(as[byte]([]T{a})) == string(as[byte]([]T{b}))
}

func sameOrNaN[T Number](a, b T) bool {
	switch a, b := any(a), any(b); x := a.(type) {
	case complex64:
		y := b.(complex64)
		return sameFloat(float64(real(x)), float64(real(y))) && sameFloat(float64(imag(x)), float64(imag(y)))
	case complex128:
		y := b.(complex128)
		return sameFloat(real(x), real(y)) && sameFloat(imag(x), imag(y))
	case Float16:
		return x == b.(Float16) || formatFloat16.isNaN(uint16(x)) && formatFloat16.isNaN(uint16(b.(Float16)))
	case BFloat16:
		return x == b.(BFloat16) || formatBFloat16.isNaN(uint16(x)) && formatBFloat16.isNaN(uint16(b.(BFloat16)))
	}
	if v := reflect.ValueOf(a); v.CanFloat() {
		return sameFloat(v.Float(), reflect.ValueOf(b).Float())
	}
	return a == b
}

func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}
