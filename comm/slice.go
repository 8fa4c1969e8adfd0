package comm

import (
	"context"
	"unsafe"
)

// Number is what slices may be made of that are sent as they are in memory. All
// ranks must have the same byte order and size of int.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Bytes is the memory of numbers, not a copy: what is written to one is in the other. It is
// in the byte order of the machine. It is nil where there are no numbers.
func Bytes[T Number](numbers []T) []byte {
	if len(numbers) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&numbers[0])), len(numbers)*int(unsafe.Sizeof(numbers[0])))
}

// Send is Comm.Send of numbers, without a copy.
func Send[T Number](ctx context.Context, c *Comm, numbers []T, dest, tag int) error {
	return c.Send(ctx, Bytes(numbers), dest, tag)
}

// Recv is Comm.Recv into numbers, without a copy. n is how many numbers the message
// has. One that does not end with a whole number is a *TruncationError.
func Recv[T Number](ctx context.Context, c *Comm, numbers []T, source, tag int) (status Status, n int, err error) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	status, err = c.Recv(ctx, Bytes(numbers), source, tag)
	if n = status.Length / size; err == nil && status.Length%size != 0 {
		err = &TruncationError{Size: status.Length, Limit: n * size}
	}
	return status, n, err
}
