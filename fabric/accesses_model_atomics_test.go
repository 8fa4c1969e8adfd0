package fabric_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/cmplx"

	"github.com/weft-go/weft/fabric"
)

// What atomic operations make of values, in bytes, as Go has it.

// atomicChoice is an operation on a type that a provider has.
type atomicChoice struct {
	kind  fabric.OpKind
	on    fabric.DataType
	what  fabric.AtomicOp
	limit int // of values
}

// modelTypes are those that the model knows; it moves the last ones, and does not reckon.
var modelTypes = map[fabric.DataType]func(what fabric.AtomicOp, there, here, compare []byte) []byte{
	fabric.Int8: ofIntegers[int8], fabric.Uint8: ofIntegers[uint8], fabric.Int16: ofIntegers[int16], fabric.Uint16: ofIntegers[uint16],
	fabric.Int32: ofIntegers[int32], fabric.Uint32: ofIntegers[uint32], fabric.Int64: ofIntegers[int64], fabric.Uint64: ofIntegers[uint64],
	fabric.Float32: ofFloats[float32], fabric.Float64: ofFloats[float64],
	fabric.Complex64: ofComplex[complex64], fabric.Complex128: ofComplex[complex128],
	fabric.Int128: ofWide, fabric.Uint128: ofWide,
}

// atomicChoices asks an endpoint for all that the model knows.
func atomicChoices(e *fabric.Endpoint) (all []atomicChoice) {
	for on := fabric.Int8; on <= fabric.Float8E5M2; on++ {
		model := modelTypes[on]
		for what := fabric.Min; model != nil && what <= fabric.Difference; what++ {
			for kind := fabric.OpAtomic; kind <= fabric.OpCompare; kind++ {
				comparing := what >= fabric.CompareSwap && what <= fabric.MaskedSwap
				some := bytes.Repeat([]byte{1}, on.Size())
				if comparing != (kind == fabric.OpCompare) || what == fabric.AtomicRead && kind != fabric.OpFetch || model(what, some, some, some) == nil {
					continue
				}
				asked := kind
				if kind == fabric.OpAtomicInject {
					asked = fabric.OpAtomic
				}
				if limit, err := e.AtomicLimit(asked, on, what); err == nil {
					all = append(all, atomicChoice{kind, on, what, limit})
				}
			}
		}
	}
	return all
}

// combine is what the values there become; nil says that Go and C may not agree.
func (c *atomicChoice) combine(there, here, compare []byte) (all []byte) {
	size := c.on.Size()
	part := func(b []byte, at int) []byte {
		if b == nil {
			return make([]byte, size)
		}
		return b[at : at+size]
	}
	for at := 0; at < len(there); at += size {
		one := modelTypes[c.on](c.what, there[at:at+size], part(here, at), part(compare, at))
		if one == nil {
			return nil
		}
		all = append(all, one...)
	}
	return all
}

func decoded[T any](b []byte) (v T) {
	_, _ = binary.Decode(b, binary.NativeEndian, &v)
	return v
}

func encoded[T any](v T) []byte {
	b, _ := binary.Append(nil, binary.NativeEndian, v)
	return b
}

func oneIf[T ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64](b bool) T {
	if b {
		return 1
	}
	return 0
}

func ofIntegers[T ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64](what fabric.AtomicOp, there, here, compare []byte) []byte {
	a, b, c := decoded[T](there), decoded[T](here), decoded[T](compare)
	switch what {
	case fabric.BitOr:
		return encoded(a | b)
	case fabric.BitAnd:
		return encoded(a & b)
	case fabric.BitXor:
		return encoded(a ^ b)
	case fabric.MaskedSwap:
		return encoded(b&c | a&^c)
	}
	return ofOrdered(what, a, b, c)
}

func ofFloats[T ~float32 | ~float64](what fabric.AtomicOp, there, here, compare []byte) []byte {
	a, b, c := decoded[T](there), decoded[T](here), decoded[T](compare)
	for _, v := range []T{a, b, c} {
		// Of what is none, and of a zero with a sign, each may make something else.
		if math.IsNaN(float64(v)) || v == 0 && math.Signbit(float64(v)) || math.IsInf(float64(v), 0) {
			return ofBytes(what, there, here, compare)
		}
	}
	return ofOrdered(what, a, b, c)
}

func ofOrdered[T ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64](what fabric.AtomicOp, a, b, c T) []byte {
	swap := func(holds bool) []byte {
		if holds {
			return encoded(b)
		}
		return encoded(a)
	}
	switch what {
	case fabric.Min:
		return encoded(min(a, b))
	case fabric.Max:
		return encoded(max(a, b))
	case fabric.Sum:
		return encoded(a + b)
	case fabric.Difference:
		return encoded(a - b)
	case fabric.Product:
		return encoded(a * b)
	case fabric.LogicalOr:
		return encoded(oneIf[T](a != 0 || b != 0))
	case fabric.LogicalAnd:
		return encoded(oneIf[T](a != 0 && b != 0))
	case fabric.LogicalXor:
		return encoded(oneIf[T]((a != 0) != (b != 0)))
	case fabric.AtomicRead:
		return encoded(a)
	case fabric.AtomicWrite:
		return encoded(b)
	case fabric.CompareSwap:
		return swap(c == a)
	case fabric.CompareSwapNot:
		return swap(c != a)
	case fabric.CompareSwapAtMost:
		return swap(c <= a)
	case fabric.CompareSwapBelow:
		return swap(c < a)
	case fabric.CompareSwapAtLeast:
		return swap(c >= a)
	case fabric.CompareSwapAbove:
		return swap(c > a)
	}
	return nil
}

func ofComplex[T complex64 | complex128](what fabric.AtomicOp, there, here, compare []byte) []byte {
	a, b, c := decoded[T](there), decoded[T](here), decoded[T](compare)
	for _, v := range []T{a, b, c} {
		if w := complex128(v); cmplx.IsNaN(w) || cmplx.IsInf(w) {
			return ofBytes(what, there, here, compare)
		}
	}
	switch what {
	case fabric.Sum:
		return encoded(a + b)
	case fabric.Difference:
		return encoded(a - b)
	case fabric.CompareSwap, fabric.CompareSwapNot:
		if (a == c) == (what == fabric.CompareSwap) {
			return here
		}
		return there
	}
	return ofBytes(what, there, here, compare)
}

func ofWide(what fabric.AtomicOp, there, here, compare []byte) []byte {
	if what != fabric.CompareSwap {
		return ofBytes(what, there, here, compare)
	}
	if bytes.Equal(there, compare) {
		return here
	}
	return there
}

// ofBytes is of values that are not reckoned with.
func ofBytes(what fabric.AtomicOp, there, here, _ []byte) []byte {
	switch what {
	case fabric.AtomicRead:
		return there
	case fabric.AtomicWrite:
		return here
	}
	return nil
}
