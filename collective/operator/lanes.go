package operator

import "encoding/binary"

// Go's compiler makes no vector instructions. But a word of 8 bytes is a vector of
// lanes, integers of one or two bytes, for who keeps their carries apart. What follows
// does as many elements as are whole words, and returns how many bytes that are.

// The highest bit of each lane.
const (
	high8  = 0x8080808080808080
	high16 = 0x8000800080008000
)

// sumLanes adds lanes. The bits below the highest cannot carry out of a lane, and the
// highest is what an exclusive or makes of it.
func sumLanes(dst, left, right []byte, high uint64) (done int) {
	n := len(dst)
	left, right = left[:n:n], right[:n:n]
	for i := 0; i < len(dst)-7; i += 8 {
		l, r := binary.NativeEndian.Uint64(left[i:i+8]), binary.NativeEndian.Uint64(right[i:i+8])
		binary.NativeEndian.PutUint64(dst[i:i+8], (l&^high+r&^high)^(l^r)&high)
	}
	return len(dst) &^ 7
}

// pickLanes takes the greater or the lesser of lanes of so many bits.
func pickLanes(dst, left, right []byte, bits int, signed, greater bool) (done int) {
	high := uint64(high8)
	if bits == 16 {
		high = high16
	}
	// With its sign turned around, a signed number is in order with unsigned ones.
	var sign, lesser uint64
	if signed {
		sign = high
	}
	if !greater {
		lesser = ^lesser
	}
	shift := uint(bits-1) & 15
	n := len(dst)
	left, right = left[:n:n], right[:n:n]
	for i := 0; i < len(dst)-7; i += 8 {
		l, r := binary.NativeEndian.Uint64(left[i:i+8]), binary.NativeEndian.Uint64(right[i:i+8])
		a, b := l^sign, r^sign
		// The highest bit of a lane of below says that a is at least b in the bits below
		// it: it is there to borrow from. Where a and b differ in it, it decides alone.
		below := (a | high) - b&^high
		atLeast := (a&^b | below&^(a^b)) & high
		// All bits of the lanes where left is to be taken.
		mask := (atLeast<<1 - atLeast>>shift) ^ lesser
		binary.NativeEndian.PutUint64(dst[i:i+8], r^(l^r)&mask)
	}
	return len(dst) &^ 7
}
