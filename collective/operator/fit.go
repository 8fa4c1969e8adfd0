package operator

import "unsafe"

// fit says that kernels may be given these slices.
func fit[T any](dst, left, right []T) bool {
	return len(left) == len(dst) && len(right) == len(dst) && !partly(dst, left) && !partly(dst, right)
}

// partly says that two slices of one length overlap, but are not the same.
func partly[T any](a, b []T) bool {
	p, q := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	size := uintptr(len(a)) * unsafe.Sizeof(*new(T))
	return p != q && (p-q < size || q-p < size)
}

// misfit says why slices do not fit.
func misfit[T any](e Erased, dst, left, right []T) error {
	if err := e.Err(); err != nil {
		return err
	}
	size := int(unsafe.Sizeof(*new(T)))
	switch {
	case len(left) != len(dst) || len(right) != len(dst):
		return &LengthError{Operator: e.String(), Dst: len(dst) * size, Left: len(left) * size, Right: len(right) * size}
	case partly(dst, left):
		return &OverlapError{Operator: e.String(), Operand: "left"}
	}
	return &OverlapError{Operator: e.String(), Operand: "right"}
}
