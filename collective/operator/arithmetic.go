package operator

import "unsafe"

// Sum adds. Integers wrap around.
func Sum[T Number]() Op[T] { return newNumbers[T](codeSum) }

// Product multiplies. Integers wrap around.
func Product[T Number]() Op[T] { return newNumbers[T](codeProduct) }

// sum has vectors, lanes of short integers behind them, and four at a time for what is left.
// What depends on the size of T is decided when this is compiled for it.
func sum[T Number](dst, left, right []T) {
	done := sumVectors(dst, left, right)
	dst = dst[done:]
	left, right = left[done:][:len(dst)], right[done:][:len(dst)]
	done = 0
	switch unsafe.Sizeof(*new(T)) {
	case 1:
		done = sumLanes(as[byte](dst), as[byte](left), as[byte](right), high8)
	case 2:
		switch dst := any(dst).(type) {
		case []Float16:
			sumFloat16(dst, any(left).([]Float16), any(right).([]Float16))
			return
		case []BFloat16:
			sumBFloat16(dst, any(left).([]BFloat16), any(right).([]BFloat16))
			return
		}
		done = sumLanes(as[byte](dst), as[byte](left), as[byte](right), high16) / 2
	}
	dst = dst[done:]
	left, right = left[done:][:len(dst)], right[done:][:len(dst)]
	for i := 0; i < len(dst)-3; i += 4 {
		dst[i] = left[i] + right[i]
		dst[i+1] = left[i+1] + right[i+1]
		dst[i+2] = left[i+2] + right[i+2]
		dst[i+3] = left[i+3] + right[i+3]
	}
	for i := len(dst) &^ 3; i < len(dst); i++ {
		dst[i] = left[i] + right[i]
	}
}

func product[T Number](dst, left, right []T) {
	if unsafe.Sizeof(*new(T)) == 2 {
		switch dst := any(dst).(type) {
		case []Float16:
			productFloat16(dst, any(left).([]Float16), any(right).([]Float16))
			return
		case []BFloat16:
			productBFloat16(dst, any(left).([]BFloat16), any(right).([]BFloat16))
			return
		}
	}
	left, right = left[:len(dst)], right[:len(dst)]
	for i := 0; i < len(dst)-3; i += 4 {
		dst[i] = left[i] * right[i]
		dst[i+1] = left[i+1] * right[i+1]
		dst[i+2] = left[i+2] * right[i+2]
		dst[i+3] = left[i+3] * right[i+3]
	}
	for i := len(dst) &^ 3; i < len(dst); i++ {
		dst[i] = left[i] * right[i]
	}
}
