package operator

import (
	"math"
	"strconv"
)

// Float16 is an IEEE 754 half precision float as its bits: a sign, 5 bits of exponent
// and 10 of fraction. Go's arithmetic with it is that of the bits, so convert it.
type Float16 uint16

const (
	bias32     = 127        // of the exponent of a float32
	infinity32 = 0xff << 23 // the bits of it: all of the exponent
)

// ToFloat16 rounds to the nearest Float16, and to the even one from the middle: so
// from 65520 on to infinity. A NaN becomes a quiet one of the same sign.
func ToFloat16(f float32) Float16 { return fromBits(math.Float32bits(f)) }

// fromBits is ToFloat16 of the bits of a float32. It and roundBits have no branches, and
// are apart because the compiler would not inline them as one.
func fromBits(bits uint32) Float16 {
	return Float16(bits>>16&0x8000 | roundBits(bits&^(1<<31)))
}

func roundBits(bits uint32) uint32 {
	quiet := (infinity32 - bits) >> 31 << 9
	bits = min(bits, (bias32+16)<<23)
	// A power of two so much greater that the sum is rounded to what a Float16 has of the
	// fraction, or to the place of the last bit of those that are subnormal.
	power := max(bits, (bias32-14)<<23)&infinity32 + 13<<23
	sum := math.Float32bits(math.Float32frombits(bits) + math.Float32frombits(power))
	// The leading bit, which is there unless it is subnormal, goes to the exponent, and so
	// does what was rounded up to the next power of two, beyond the last one to infinity.
	return power>>13 - (bias32-1)<<10 + sum - power | quiet
}

// Float32 is the same value as float32. A NaN stays one, quiet and with its payload.
func (h Float16) Float32() float32 {
	bits := uint32(h & 0x7fff)
	// Zero and what is subnormal have no leading bit: it is added for float32 to have one,
	// and then subtracted. Infinity and NaN have the greatest exponent here and there, and
	// what is subtracted, 0, makes a NaN quiet.
	less, most := (bits-0x400)>>31, (0x7bff-bits)>>31
	bits = (bits+less<<10)<<13 + (bias32-15)<<23<<most
	f := math.Float32frombits(bits) - math.Float32frombits(-less&((bias32-14)<<23))
	return math.Float32frombits(uint32(h&0x8000)<<16 | math.Float32bits(f))
}

// String is the value as a decimal, with the digits that a float32 needs.
func (h Float16) String() string { return decimal(h.Float32()) }

func decimal(f float32) string { return strconv.FormatFloat(float64(f), 'g', -1, 32) }

func sumFloat16(dst, left, right []Float16) {
	left, right = left[:len(dst)], right[:len(dst)]
	for i := range dst {
		dst[i] = fromBits(math.Float32bits(left[i].Float32() + right[i].Float32()))
	}
}

func productFloat16(dst, left, right []Float16) {
	left, right = left[:len(dst)], right[:len(dst)]
	for i := range dst {
		dst[i] = fromBits(math.Float32bits(left[i].Float32() * right[i].Float32()))
	}
}
