package operator

import (
	"reflect"
	"unsafe"
)

// Bytes is the memory of elements, not a copy: whoever writes to one writes to the
// other. It is empty if there are none. The error is [Check]'s.
//
// Structs may have padding, such as [Located] of numbers of less than 8 bytes. What is
// in there is not specified, so elements are to be compared, not their bytes.
func Bytes[T any](elements []T) ([]byte, error) {
	if err := Check[T](); err != nil {
		return nil, err
	}
	return as[byte](elements), nil
}

// Elements is memory as elements, not a copy: the reverse of [Bytes]. The memory may be
// Go's or not. It must come from elements of the same type, since not all bytes are
// values of all types: a bool is 0 or 1.
//
// The error is [Check]'s, or a *[ViewError]: the memory must begin where elements of T
// may, and hold a whole number of them.
func Elements[T any](memory []byte) ([]T, error) {
	if err := Check[T](); err != nil {
		return nil, err
	}
	return view[T](memory)
}

// view is Elements of a T that was checked.
func view[T any](memory []byte) ([]T, error) {
	size, alignment := unsafe.Sizeof(*new(T)), unsafe.Alignof(*new(T))
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	if uintptr(len(memory))%size != 0 || len(memory) > 0 && begin%alignment != 0 {
		return nil, &ViewError{
			Type: reflect.TypeFor[T]().String(), Length: len(memory), Size: int(size),
			Misaligned: int(begin % alignment), Alignment: int(alignment),
		}
	}
	return as[T](memory), nil
}

// as is the same memory as elements of another type, whose alignment it must have. A
// rest that is no whole element is left out.
func as[To, From any](s []From) []To {
	n := uintptr(len(s)) * unsafe.Sizeof(*new(From)) / unsafe.Sizeof(*new(To))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*To)(unsafe.Pointer(unsafe.SliceData(s))), n)
}
