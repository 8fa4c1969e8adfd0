package operator

// Integer is what [And], [Or] and [Xor] work with. A uintptr is none: an address
// means nothing to another rank.
type Integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint
}

// Real is what [Min], [Max], [MinLoc] and [MaxLoc] work with: numbers that have an
// order. [Float16] and [BFloat16] are among them.
type Real interface {
	Integer | ~float32 | ~float64
}

// Number is what [Sum] and [Product] work with.
type Number interface {
	Real | ~complex64 | ~complex128
}
