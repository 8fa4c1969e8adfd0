package operator

// code names a built-in operator. Bodies are codes of a family, whose type says what the
// elements are: Go makes an interface of one byte without memory, so an operator needs
// none, and there are fewer types to compile than if each operator was one.
type code uint8

const (
	codeSum code = iota
	codeProduct
	codeMin
	codeMax
	codeAnd
	codeOr
	codeXor
	codeLogicalAnd
	codeLogicalOr
	codeLogicalXor
	codeMinLoc
	codeMaxLoc
)

// names are as many as a code modulo that needs no check for.
var names = [16]string{
	codeSum: "sum", codeProduct: "product", codeMin: "min", codeMax: "max", codeAnd: "and", codeOr: "or", codeXor: "xor",
	codeLogicalAnd: "logical-and", codeLogicalOr: "logical-or", codeLogicalXor: "logical-xor",
	codeMinLoc: "minloc", codeMaxLoc: "maxloc",
}

func aboutBuiltin[T any](c code) about {
	a := aboutElements[T]()
	a.name, a.builtin = names[c%16], true
	return a
}

// numbers are the operators of everything that can be added.
type numbers[T Number] code

func newNumbers[T Number](c code) Op[T] { return Op[T]{numbers[T](c), Erased{numbers[T](c)}} }

func (n numbers[T]) about() about { return aboutBuiltin[T](code(n)) }

func (numbers[T]) commutes() bool { return true }

func (numbers[T]) wrong() error { return nil }

func (n numbers[T]) combineBytes(dst, left, right []byte) error {
	return applyBytes(n, dst, left, right)
}

func (n numbers[T]) combine(dst, left, right []T) error {
	switch code(n) {
	case codeSum:
		sum(dst, left, right)
	case codeProduct:
		product(dst, left, right)
	}
	return nil
}

// orders are the operators of what has an order.
type orders[T Real] code

func newOrders[T Real](c code) Op[T] { return Op[T]{orders[T](c), Erased{orders[T](c)}} }

func (o orders[T]) about() about { return aboutBuiltin[T](code(o)) }

func (orders[T]) commutes() bool { return true }

func (orders[T]) wrong() error { return nil }

func (o orders[T]) combineBytes(dst, left, right []byte) error {
	return applyBytes(o, dst, left, right)
}

func (o orders[T]) combine(dst, left, right []T) error {
	switch code(o) {
	case codeMin:
		minimum(dst, left, right)
	case codeMax:
		maximum(dst, left, right)
	}
	return nil
}

// places are the operators of what has an order and a place.
type places[T Real] code

func newPlaces[T Real](c code) Op[Located[T]] {
	return Op[Located[T]]{places[T](c), Erased{places[T](c)}}
}

func (p places[T]) about() about { return aboutBuiltin[Located[T]](code(p)) }

func (places[T]) commutes() bool { return true }

func (places[T]) wrong() error { return nil }

func (p places[T]) combineBytes(dst, left, right []byte) error {
	return applyBytes(p, dst, left, right)
}

func (p places[T]) combine(dst, left, right []Located[T]) error {
	switch code(p) {
	case codeMinLoc:
		minLoc(dst, left, right)
	case codeMaxLoc:
		maxLoc(dst, left, right)
	}
	return nil
}

// bits are the operators of what is seen as bits.
type bits[T Integer | ~bool] code

func newBits[T Integer | ~bool](c code) Op[T] { return Op[T]{bits[T](c), Erased{bits[T](c)}} }

func (b bits[T]) about() about { return aboutBuiltin[T](code(b)) }

func (bits[T]) commutes() bool { return true }

func (bits[T]) wrong() error { return nil }

func (b bits[T]) combineBytes(dst, left, right []byte) error {
	return applyBytes(b, dst, left, right)
}

func (b bits[T]) combine(dst, left, right []T) error {
	combineBits(code(b), as[byte](dst), as[byte](left), as[byte](right))
	return nil
}
