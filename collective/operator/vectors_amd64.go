package operator

import (
	"reflect"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Go's compiler makes no vector instructions, which add several times as many numbers in the
// same time: the sum, which most reductions are, has its loops in assembly. They do the same
// to each element as the loops in Go, which do what is left over, and all of it elsewhere.

// sumBlock is how many bytes the functions in vectors_amd64.s do at a time.
const sumBlock = 128

//go:noescape
func sumInt8s(dst, left, right unsafe.Pointer, blocks int)

//go:noescape
func sumInt16s(dst, left, right unsafe.Pointer, blocks int)

//go:noescape
func sumInt32s(dst, left, right unsafe.Pointer, blocks int)

//go:noescape
func sumInt64s(dst, left, right unsafe.Pointer, blocks int)

//go:noescape
func sumFloat16s(dst, left, right unsafe.Pointer, blocks int)

//go:noescape
func sumBFloat16s(dst, left, right unsafe.Pointer, blocks int)

//go:noescape
func sumFloat32s(dst, left, right unsafe.Pointer, blocks int)

//go:noescape
func sumFloat64s(dst, left, right unsafe.Pointer, blocks int)

// hasVectors is changed by tests only.
var hasVectors = cpu.X86.HasAVX2 && cpu.X86.HasF16C

// mostAtOnce is how many bytes are added in a row: Go's scheduler, and with it the garbage
// collector, cannot interrupt assembly.
const mostAtOnce = 256 << 10

// sumVectors adds the elements that are whole blocks, and returns how many that are.
func sumVectors[T Number](dst, left, right []T) (done int) {
	if !hasVectors {
		return 0
	}
	left, right = left[:len(dst)], right[:len(dst)]
	most := mostAtOnce / int(unsafe.Sizeof(*new(T)))
	for len(dst) > most && len(left) > most && len(right) > most {
		added := sumAtOnce(dst[:most], left[:most], right[:most])
		if done += added; added < most {
			return done
		}
		dst, left, right = dst[most:], left[most:], right[most:]
	}
	return done + sumAtOnce(dst, left, right)
}

func sumAtOnce[T Number](dst, left, right []T) (done int) {
	size := int(unsafe.Sizeof(*new(T)))
	blocks := len(dst) * size / sumBlock
	if blocks == 0 {
		return 0
	}
	d, l, r := unsafe.Pointer(&dst[0]), unsafe.Pointer(&left[0]), unsafe.Pointer(&right[0])
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Int8, reflect.Uint8:
		sumInt8s(d, l, r, blocks)
	case reflect.Int16, reflect.Uint16:
		switch formatOf[T]() {
		case &formatFloat16:
			sumFloat16s(d, l, r, blocks)
		case &formatBFloat16:
			sumBFloat16s(d, l, r, blocks)
		default:
			sumInt16s(d, l, r, blocks)
		}
	case reflect.Int32, reflect.Uint32:
		sumInt32s(d, l, r, blocks)
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Uint:
		// An int has 64 bits on this processor.
		sumInt64s(d, l, r, blocks)
	case reflect.Float32, reflect.Complex64:
		sumFloat32s(d, l, r, blocks)
	case reflect.Float64, reflect.Complex128:
		sumFloat64s(d, l, r, blocks)
	default:
		return 0
	}
	return blocks * sumBlock / size
}
