// Package operator has what reductions combine elements with: sum, product, minimum
// and the rest over every numeric Go type, and functions of the user's own.
//
// An [Op] combines two slices of one length, element by element:
//
//	op := operator.Sum[float64]()
//	err := op.Apply(dst, left, right) // dst[i] = left[i] + right[i]
//
// Left is the operand of the lower ranks, which matters to operators that do not
// commute, such as the product of matrices ([Func]).
//
// # Elements
//
// Elements travel as the bytes that they have in memory, so they must be memory of a
// fixed size without pointers: numbers, bools, and arrays and structs of those.
// [Check] says whether a type is that, [Bytes] and [Elements] turn slices into their
// bytes and back, without a copy. All ranks must have the same byte order, size of
// int and layout of structs, as machines of one architecture have.
//
// # What the operators do
//
//   - Integers wrap around, as in Go.
//   - Min and Max are Go's built-in min and max: a NaN on either side gives a NaN,
//     and -0 is less than +0. Which NaN it is, is not specified, here as for all
//     operators.
//   - Floats are rounded each time two are combined, so the sum of several depends on
//     who was combined with whom. Every built-in operator commutes; those over
//     integers, Min, Max, MinLoc and MaxLoc are associative too.
//   - [Float16] and [BFloat16] are combined as float32 and rounded once to the
//     nearest, to even from the middle: what the exact result would be rounded to.
//     Types that are defined from them (type T Float16) are integers to this package.
//
// # Without types
//
// [Op.Erased] is the same operator over bytes, for code that is not generic. [All]
// lists the built-in ones, each with every type.
package operator
