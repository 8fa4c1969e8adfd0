package operator

// Located is a value and where it is, a rank or a place in an array say.
//
// In memory it is as Go lays out the struct: Value first, Index at the next multiple of
// 8 bytes where the architecture aligns an int64 to 8, as amd64 and arm64 do. So ranks
// on machines of one architecture agree about it. The bytes between the two, if any,
// are not specified.
type Located[T Real] struct {
	Value T
	Index int64
}

// MinLoc takes the lesser Value, and of two that are equal the one with the lower
// Index. A NaN goes before all else, and -0 equals +0.
func MinLoc[T Real]() Op[Located[T]] { return newPlaces[T](codeMinLoc) }

// MaxLoc takes the greater Value, and of two that are equal the one with the lower
// Index. A NaN goes before all else, and -0 equals +0.
func MaxLoc[T Real]() Op[Located[T]] { return newPlaces[T](codeMaxLoc) }

func minLoc[T Real](dst, left, right []Located[T]) {
	if f := formatOf[T](); f != nil {
		locateHalves(as[Located[uint16]](dst), as[Located[uint16]](left), as[Located[uint16]](right), f, false)
		return
	}
	left, right = left[:len(dst)], right[:len(dst)]
	for i := range dst {
		l, r := left[i], right[i]
		if r.Value < l.Value || r.Value == l.Value && r.Index < l.Index ||
			isNaN(r.Value) && (!isNaN(l.Value) || r.Index < l.Index) {
			l = r
		}
		dst[i] = l
	}
}

func maxLoc[T Real](dst, left, right []Located[T]) {
	if f := formatOf[T](); f != nil {
		locateHalves(as[Located[uint16]](dst), as[Located[uint16]](left), as[Located[uint16]](right), f, true)
		return
	}
	left, right = left[:len(dst)], right[:len(dst)]
	for i := range dst {
		l, r := left[i], right[i]
		if r.Value > l.Value || r.Value == l.Value && r.Index < l.Index ||
			isNaN(r.Value) && (!isNaN(l.Value) || r.Index < l.Index) {
			l = r
		}
		dst[i] = l
	}
}

func isNaN[T Real](v T) bool { return v != v } //nolint:gocritic // nothing but a NaN is not itself

// locateHalves is MinLoc and MaxLoc of floats of 16 bits.
func locateHalves(dst, left, right []Located[uint16], f *format, greater bool) {
	left, right = left[:len(dst)], right[:len(dst)]
	for i := range dst {
		l, r := left[i], right[i]
		a, b := f.rank(l.Value, greater), f.rank(r.Value, greater)
		if b < a || b == a && r.Index < l.Index {
			l = r
		}
		dst[i] = l
	}
}
