package operator

import "slices"

// All is every built-in operator with every type that it takes, for tests and
// measurements: each pair once, named by its String.
func All() []Erased {
	return slices.Concat(
		ofIntegers[int8](), ofIntegers[int16](), ofIntegers[int32](), ofIntegers[int64](), ofIntegers[int](),
		ofIntegers[uint8](), ofIntegers[uint16](), ofIntegers[uint32](), ofIntegers[uint64](), ofIntegers[uint](),
		ofReals[Float16](), ofReals[BFloat16](), ofReals[float32](), ofReals[float64](),
		ofNumbers[complex64](), ofNumbers[complex128](),
		[]Erased{LogicalAnd[bool]().Erased(), LogicalOr[bool]().Erased(), LogicalXor[bool]().Erased()},
	)
}

func ofNumbers[T Number]() []Erased {
	return []Erased{Sum[T]().Erased(), Product[T]().Erased()}
}

func ofReals[T Real]() []Erased {
	return append(ofNumbers[T](), Min[T]().Erased(), Max[T]().Erased(), MinLoc[T]().Erased(), MaxLoc[T]().Erased())
}

func ofIntegers[T Integer]() []Erased {
	return append(ofReals[T](), And[T]().Erased(), Or[T]().Erased(), Xor[T]().Erased())
}
