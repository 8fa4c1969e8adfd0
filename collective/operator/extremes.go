package operator

import "unsafe"

// Min takes the lesser, as the built-in min: a NaN on either side gives a NaN, and -0
// is less than +0.
func Min[T Real]() Op[T] { return newOrders[T](codeMin) }

// Max takes the greater, as the built-in max: a NaN on either side gives a NaN, and
// -0 is less than +0.
func Max[T Real]() Op[T] { return newOrders[T](codeMax) }

func minimum[T Real](dst, left, right []T) {
	done := extremeShort(dst, left, right, false)
	dst = dst[done:]
	left, right = left[done:][:len(dst)], right[done:][:len(dst)]
	for i := 0; i < len(dst)-3; i += 4 {
		dst[i] = min(left[i], right[i])
		dst[i+1] = min(left[i+1], right[i+1])
		dst[i+2] = min(left[i+2], right[i+2])
		dst[i+3] = min(left[i+3], right[i+3])
	}
	for i := len(dst) &^ 3; i < len(dst); i++ {
		dst[i] = min(left[i], right[i])
	}
}

func maximum[T Real](dst, left, right []T) {
	done := extremeShort(dst, left, right, true)
	dst = dst[done:]
	left, right = left[done:][:len(dst)], right[done:][:len(dst)]
	for i := 0; i < len(dst)-3; i += 4 {
		dst[i] = max(left[i], right[i])
		dst[i+1] = max(left[i+1], right[i+1])
		dst[i+2] = max(left[i+2], right[i+2])
		dst[i+3] = max(left[i+3], right[i+3])
	}
	for i := len(dst) &^ 3; i < len(dst); i++ {
		dst[i] = max(left[i], right[i])
	}
}

// extremeShort does numbers of one and two bytes, several at a time, and says how many
// it has done: all but fewer than 8, or none of longer numbers.
func extremeShort[T Real](dst, left, right []T, greater bool) (done int) {
	zero := *new(T)
	size := int(unsafe.Sizeof(zero))
	if size > 2 {
		return 0
	}
	if f := formatOf[T](); f != nil {
		extremeHalves(as[uint16](dst), as[uint16](left), as[uint16](right), f, greater)
		return len(dst)
	}
	signed := zero-1 < zero
	return pickLanes(as[byte](dst), as[byte](left), as[byte](right), 8*size, signed, greater) / size
}
