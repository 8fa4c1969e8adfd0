package operator

import "encoding/binary"

// And is the bitwise and. Of a [Float16], it is that of its bits.
func And[T Integer]() Op[T] { return newBits[T](codeAnd) }

// Or is the bitwise or.
func Or[T Integer]() Op[T] { return newBits[T](codeOr) }

// Xor is the bitwise exclusive or.
func Xor[T Integer]() Op[T] { return newBits[T](codeXor) }

// LogicalAnd is true where both are.
func LogicalAnd[T ~bool]() Op[T] { return newBits[T](codeLogicalAnd) }

// LogicalOr is true where one is, or both.
func LogicalOr[T ~bool]() Op[T] { return newBits[T](codeLogicalOr) }

// LogicalXor is true where just one is.
func LogicalXor[T ~bool]() Op[T] { return newBits[T](codeLogicalXor) }

// combineBits works on bytes, since bits do not care about what they are parts of. A bool
// is the lowest bit of a byte: with the others masked, what is written is a bool whatever
// was read.
func combineBits(c code, dst, left, right []byte) {
	const all, one = 1<<64 - 1, 0x0101010101010101
	switch c {
	case codeAnd:
		andBits(dst, left, right, all)
	case codeOr:
		orBits(dst, left, right, all)
	case codeXor:
		xorBits(dst, left, right, all)
	case codeLogicalAnd:
		andBits(dst, left, right, one)
	case codeLogicalOr:
		orBits(dst, left, right, one)
	case codeLogicalXor:
		xorBits(dst, left, right, one)
	}
}

func andBits(dst, left, right []byte, mask uint64) {
	n := len(dst)
	left, right = left[:n:n], right[:n:n]
	for i := 0; i < len(dst)-7; i += 8 {
		l, r := binary.NativeEndian.Uint64(left[i:i+8]), binary.NativeEndian.Uint64(right[i:i+8])
		binary.NativeEndian.PutUint64(dst[i:i+8], l&r&mask)
	}
	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = left[i] & right[i] & byte(mask)
	}
}

func orBits(dst, left, right []byte, mask uint64) {
	n := len(dst)
	left, right = left[:n:n], right[:n:n]
	for i := 0; i < len(dst)-7; i += 8 {
		l, r := binary.NativeEndian.Uint64(left[i:i+8]), binary.NativeEndian.Uint64(right[i:i+8])
		binary.NativeEndian.PutUint64(dst[i:i+8], (l|r)&mask)
	}
	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = (left[i] | right[i]) & byte(mask)
	}
}

func xorBits(dst, left, right []byte, mask uint64) {
	n := len(dst)
	left, right = left[:n:n], right[:n:n]
	for i := 0; i < len(dst)-7; i += 8 {
		l, r := binary.NativeEndian.Uint64(left[i:i+8]), binary.NativeEndian.Uint64(right[i:i+8])
		binary.NativeEndian.PutUint64(dst[i:i+8], (l^r)&mask)
	}
	for i := len(dst) &^ 7; i < len(dst); i++ {
		dst[i] = (left[i] ^ right[i]) & byte(mask)
	}
}
