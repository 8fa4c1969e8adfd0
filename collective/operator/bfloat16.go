package operator

import "math"

// BFloat16 is the upper half of a float32 as its bits: a sign, 8 bits of exponent and
// 7 of fraction. Go's arithmetic with it is that of the bits, so convert it.
type BFloat16 uint16

// ToBFloat16 rounds to the nearest BFloat16, and to the even one from the middle. A NaN
// becomes a quiet one of the same sign.
func ToBFloat16(f float32) BFloat16 {
	bits := math.Float32bits(f)
	if f != f {
		return BFloat16(bits>>16 | 1<<6)
	}
	// What is rounded up beyond the largest becomes infinity by itself.
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 is the same value as float32. A NaN stays one, quiet and with its payload.
func (b BFloat16) Float32() float32 {
	bits := uint32(b) << 16
	if b&0x7fff > 0x7f80 {
		bits |= 1 << 22
	}
	return math.Float32frombits(bits)
}

// String is the value as a decimal, with the digits that a float32 needs.
func (b BFloat16) String() string { return decimal(b.Float32()) }

func sumBFloat16(dst, left, right []BFloat16) {
	left, right = left[:len(dst)], right[:len(dst)]
	for i := range dst {
		dst[i] = ToBFloat16(left[i].Float32() + right[i].Float32())
	}
}

func productBFloat16(dst, left, right []BFloat16) {
	left, right = left[:len(dst)], right[:len(dst)]
	for i := range dst {
		dst[i] = ToBFloat16(left[i].Float32() * right[i].Float32())
	}
}
