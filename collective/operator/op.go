package operator

// Op is an operator over elements of T. It never changes, so any number of goroutines
// may use one at the same time. Making one of the built-in operators costs next to
// nothing, and no memory, so there is no need to keep it.
//
// The zero Op is none: its calls return [ErrNoOperator].
type Op[T any] struct {
	body body[T]
	// erased has the same value. From one interface to the other, Go would have to look
	// up the method table each time.
	erased Erased
}

// body is what an operator does.
type body[T any] interface {
	anyBody
	// combine is Op.Apply of slices that fit.
	combine(dst, left, right []T) error
}

// Name is the operator's own, such as "sum".
func (o Op[T]) Name() string { return o.erased.Name() }

// String is the name of the operator and of its elements' type, such as
// "sum/float64".
func (o Op[T]) String() string { return o.erased.String() }

// Commutative says that left and right may be exchanged.
func (o Op[T]) Commutative() bool { return o.erased.Commutative() }

// Err says why Apply would fail whatever it is given: a *[TypeError] where T is no
// type of elements, or [ErrNoOperator]. It is nil for the built-in operators.
func (o Op[T]) Err() error { return o.erased.Err() }

// Erased is the same operator over bytes.
func (o Op[T]) Erased() Erased { return o.erased }

// Apply combines left, the operand of the lower ranks, with right: dst[i] = left[i] op
// right[i]. It does not allocate, and keeps none of the slices.
//
// All three have one length, or else Apply returns a *[LengthError]. dst may be the
// same slice as left, as right or as both, but may not overlap with part of either,
// which is an *[OverlapError]. A function of the user's that panics gives a
// *[PanicError], and leaves dst undefined. After the other errors dst is as it was.
func (o Op[T]) Apply(dst, left, right []T) error {
	if o.body == nil {
		return ErrNoOperator
	}
	return apply(o.body, dst, left, right)
}

func apply[T any](b body[T], dst, left, right []T) error {
	if !fit(dst, left, right) {
		return misfit(Erased{b}, dst, left, right)
	}
	return b.combine(dst, left, right)
}
