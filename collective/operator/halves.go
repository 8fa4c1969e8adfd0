package operator

import "unsafe"

// format is how a float of 16 bits is made up.
type format struct {
	infinity uint16 // the bits of it: all of the exponent
	quiet    uint16 // the highest bit of the fraction, which a quiet NaN has
}

var (
	formatFloat16  = format{infinity: 0x7c00, quiet: 0x0200}
	formatBFloat16 = format{infinity: 0x7f80, quiet: 0x0040}
)

// formatOf is the format of a float of 16 bits, nil of what is none.
func formatOf[T any]() *format {
	if unsafe.Sizeof(*new(T)) != 2 {
		return nil
	}
	switch any(*new(T)).(type) {
	case Float16:
		return &formatFloat16
	case BFloat16:
		return &formatBFloat16
	}
	return nil
}

func (f *format) isNaN(bits uint16) bool { return bits&0x7fff > f.infinity }

// order has the order of the floats: the negative ones have theirs turned around. -0
// is one less than +0.
func order(bits uint16) int16 { return int16(bits) ^ int16(bits)>>15&0x7fff }

// rank says which of two comes first in a MinLoc or MaxLoc, the one of the lesser rank.
func (f *format) rank(bits uint16, greater bool) int32 {
	switch {
	case f.isNaN(bits):
		return -1 << 16
	case bits == 1<<15: // -0 equals +0
		return 0
	case greater:
		return -int32(order(bits))
	}
	return int32(order(bits))
}

// extremeHalves is Min and Max of floats of 16 bits. They need no float32 for that.
func extremeHalves(dst, left, right []uint16, f *format, greater bool) {
	left, right = left[:len(dst)], right[:len(dst)]
	infinity, quiet := f.infinity, f.quiet
	var turn int16
	if greater {
		turn = -1
	}
	for i := range dst {
		l, r := left[i], right[i]
		v := r
		if order(l)^turn < order(r)^turn {
			v = l
		}
		if l&0x7fff > infinity {
			v = l | quiet
		} else if r&0x7fff > infinity {
			v = r | quiet
		}
		dst[i] = v
	}
}
