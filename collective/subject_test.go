package collective

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// subject is an operator over a type, with values of which every order of combination
// that it allows makes the same: what comes of a call is exactly what comes of a fold.
type subject interface {
	String() string
	commutative() bool
	// attempt is this rank's part in a trial.
	attempt(c *comm.Comm, t trial) attempt
}

// over is a subject of elements T.
type over[T any] struct {
	op operator.Op[T]
	// value is one that a source has, made of a number.
	value func(source int, n uint64) T
	same  func(a, b T) bool
}

func (o over[T]) String() string { return o.op.String() }

func (o over[T]) commutative() bool { return o.op.Commutative() }

// period is after how many elements those of a source come again. No block, chunk or
// page is a multiple of it, so that none can be in the place of another.
const period = 1021

// tile is a period of what a source has in a trial, or less if there is less.
func (o over[T]) tile(t trial, source, n int) []T {
	s := make([]T, min(n, period))
	for i := range s {
		s[i] = o.value(source, scramble(t.seed+uint64(source)<<32+uint64(i)))
	}
	return s
}

// of is all that a source has.
func (o over[T]) of(t trial, source, n int) []T {
	s := room[T](t, n)
	o.fill(s, o.tile(t, source, n))
	return s
}

// fill repeats a tile.
func (o over[T]) fill(s, tile []T) {
	for done := copy(s, tile); done < len(s); {
		done += copy(s[done:], s[:done])
	}
}

// folded is a period of what n elements of each rank make, one rank after the other.
func (o over[T]) folded(t trial, size, n int) ([]T, error) {
	sum := o.tile(t, 0, n)
	for rank := 1; rank < size; rank++ {
		if err := o.op.Apply(sum, sum, o.tile(t, rank, n)); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// check compares with what repeats a tile, from its element first on.
func (o over[T]) check(what string, got, tile []T, first int) error {
	for i := 0; i < len(got); {
		want := tile[(first+i)%len(tile):]
		want = want[:min(len(want), len(got)-i)]
		if !sameBytes(got[i:i+len(want)], want) {
			for j, w := range want {
				if !o.same(got[i+j], w) {
					return fmt.Errorf("%s: element %d of %d is %v, want %v", what, i+j, len(got), got[i+j], w)
				}
			}
		}
		i += len(want)
	}
	return nil
}

// sameBytes is quick to say that two slices are the same, if even their bytes are.
func sameBytes[T any](a, b []T) bool {
	x, err := operator.Bytes(a)
	y, other := operator.Bytes(b)
	return err == nil && other == nil && bytes.Equal(x, y)
}

// scramble makes numbers without a pattern of those with one.
func scramble(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

func equal[T comparable](a, b T) bool { return a == b }

func ofIntegers[T operator.Integer]() []subject {
	whole := func(_ int, n uint64) T { return T(n) }
	odd := func(_ int, n uint64) T { return T(n | 1) }
	// So few that some are the same.
	few := func(_ int, n uint64) operator.Located[T] {
		return operator.Located[T]{Value: T(n % 7), Index: int64(n >> 60)}
	}
	return []subject{
		over[T]{operator.Sum[T](), whole, equal[T]},
		over[T]{operator.Product[T](), odd, equal[T]},
		over[T]{operator.Min[T](), whole, equal[T]},
		over[T]{operator.Max[T](), whole, equal[T]},
		over[T]{operator.And[T](), whole, equal[T]},
		over[T]{operator.Or[T](), whole, equal[T]},
		over[T]{operator.Xor[T](), whole, equal[T]},
		over[operator.Located[T]]{operator.MinLoc[T](), few, equal[operator.Located[T]]},
		over[operator.Located[T]]{operator.MaxLoc[T](), few, equal[operator.Located[T]]},
	}
}

// factor is one of which the products of a hundred are exact, and in the range of 16 bits.
func factor(source int, n uint64) float32 {
	f := float32(1)
	if source%8 == 0 {
		f = 2
	}
	if n&1 == 0 {
		f = -f
	}
	if n&2 == 0 {
		f = 1 / f
	}
	return f
}

// ofFloats needs conversions, since two of the types are bits to Go.
func ofFloats[T operator.Real](to func(float32) T, from func(T) float32) []subject {
	// The sums of 17 are exact in a bfloat16.
	small := func(_ int, n uint64) T { return to(float32(n%31) - 15) }
	product := func(source int, n uint64) T { return to(factor(source, n)) }
	// Ordered, and with what has an order of its own.
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1))}
	ordered := func(_ int, n uint64) T {
		if n%16 == 0 {
			return to(special[n>>8%uint64(len(special))])
		}
		return to(float32(n>>40%512) - 256)
	}
	located := func(source int, n uint64) operator.Located[T] {
		return operator.Located[T]{Value: ordered(source, n), Index: int64(n >> 60)}
	}
	sameValue := func(a, b T) bool { return from(a) == from(b) || from(a) != from(a) && from(b) != from(b) }
	same := func(a, b T) bool {
		return sameValue(a, b) && (from(a) != 0 || math.Signbit(float64(from(a))) == math.Signbit(float64(from(b))))
	}
	sameLocated := func(a, b operator.Located[T]) bool { return sameValue(a.Value, b.Value) && a.Index == b.Index }
	return []subject{
		over[T]{operator.Sum[T](), small, same},
		over[T]{operator.Product[T](), product, same},
		over[T]{operator.Min[T](), ordered, same},
		over[T]{operator.Max[T](), ordered, same},
		over[operator.Located[T]]{operator.MinLoc[T](), located, sameLocated},
		over[operator.Located[T]]{operator.MaxLoc[T](), located, sameLocated},
	}
}

func ofComplex[T complex64 | complex128]() []subject {
	small := func(_ int, n uint64) T { return T(complex(float32(n%31)-15, float32(n>>8%31)-15)) }
	turn := func(source int, n uint64) T {
		f := factor(source, n)
		if n&4 == 0 {
			return T(complex(f, 0))
		}
		return T(complex(0, f))
	}
	return []subject{
		over[T]{operator.Sum[T](), small, equal[T]},
		over[T]{operator.Product[T](), turn, equal[T]},
	}
}

func ofBools() []subject {
	coin := func(_ int, n uint64) bool { return n&1 == 0 }
	return []subject{
		over[bool]{operator.LogicalAnd[bool](), coin, equal[bool]},
		over[bool]{operator.LogicalOr[bool](), coin, equal[bool]},
		over[bool]{operator.LogicalXor[bool](), coin, equal[bool]},
	}
}

// matrix is one of 2 by 2, whose product depends on the order.
type matrix [2][2]uint16

var product = operator.Func("product", false, func(dst, left, right []matrix) {
	for i, l := range left {
		r := right[i]
		for y := range 2 {
			for x := range 2 {
				dst[i][y][x] = l[y][0]*r[0][x] + l[y][1]*r[1][x]
			}
		}
	}
})

// text is what fits of a string. Its size is no power of two.
type text struct {
	Length byte
	Bytes  [30]byte
}

var concatenation = operator.Func("concatenation", false, func(dst, left, right []text) {
	for i, t := range left {
		r := right[i]
		t.Length += byte(copy(t.Bytes[t.Length:], r.Bytes[:r.Length]))
		dst[i] = t
	}
})

var divisor = operator.Func("greatest common divisor", true, func(dst, left, right []uint32) {
	for i := range dst {
		a, b := left[i], right[i]
		for b != 0 {
			a, b = b, a%b
		}
		dst[i] = a
	}
})

// ofUsers are functions of the user's.
func ofUsers() []subject {
	letter := func(source int, n uint64) text {
		return text{Length: byte(n % 3), Bytes: [30]byte{'a' + byte(source%26), '0' + byte(n%10)}}
	}
	// What is behind the end does not count.
	sameText := func(a, b text) bool {
		return a.Length == b.Length && string(a.Bytes[:a.Length]) == string(b.Bytes[:b.Length])
	}
	return []subject{
		over[affine]{after, func(_ int, n uint64) affine { return affine{uint32(n), uint32(n >> 32)} }, equal[affine]},
		over[matrix]{product, func(_ int, n uint64) matrix {
			return matrix{{uint16(n), uint16(n >> 16)}, {uint16(n >> 32), uint16(n >> 48)}}
		}, equal[matrix]},
		over[text]{concatenation, letter, sameText},
		over[uint32]{divisor, func(_ int, n uint64) uint32 { return uint32(n%1000) * 6 }, equal[uint32]},
	}
}

// subjects are every operator with every type that it takes, and functions of the user's.
var subjects = func() (all []subject) {
	for _, some := range [][]subject{
		ofIntegers[int8](), ofIntegers[int16](), ofIntegers[int32](), ofIntegers[int64](), ofIntegers[int](),
		ofIntegers[uint8](), ofIntegers[uint16](), ofIntegers[uint32](), ofIntegers[uint64](), ofIntegers[uint](),
		ofFloats(operator.ToFloat16, operator.Float16.Float32), ofFloats(operator.ToBFloat16, operator.BFloat16.Float32),
		ofFloats(func(f float32) float32 { return f }, func(f float32) float32 { return f }),
		ofFloats(func(f float32) float64 { return float64(f) }, func(f float64) float32 { return float32(f) }),
		ofComplex[complex64](), ofComplex[complex128](), ofBools(), ofUsers(),
	} {
		all = append(all, some...)
	}
	return all
}()

func TestSubjectsAreAll(t *testing.T) {
	var got, want []string
	for _, s := range subjects[:len(subjects)-len(ofUsers())] {
		got = append(got, s.String())
	}
	for _, op := range operator.All() {
		want = append(want, op.String())
	}
	require.ElementsMatch(t, want, got)
}
