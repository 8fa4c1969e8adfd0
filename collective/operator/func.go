package operator

import "runtime/debug"

// Func is an operator of the user's own. The function sets dst[i] to left[i] op
// right[i] for every i; the operator must be associative, and commutative says whether
// it is that too. Name is for people and errors.
//
// The slices have one length, which is not 0. They belong to the function until it
// returns. dst may be the same slice as left or as right, so an element of dst is to
// be written when those of left and right have been read; left and right are not to be
// written otherwise. Several goroutines may call the function at the same time.
//
// That T is no type of elements ([Check]), or that function is nil, is what Err and
// Apply of the operator say. A function that panics ends the call with a
// *[PanicError]. It must not call [runtime.Goexit], as Fatal of package testing does: the
// goroutine that ends drives all of the rank's world, which would stand still.
func Func[T any](name string, commutative bool, function func(dst, left, right []T)) Op[T] {
	u := &user[T]{name: name, commutative: commutative, function: function, err: Check[T]()}
	if function == nil {
		u.err = ErrNoOperator
	}
	return Op[T]{u, Erased{u}}
}

// user is the body of an operator of the user's.
type user[T any] struct {
	name        string
	commutative bool
	function    func(dst, left, right []T)
	err         error
}

func (u *user[T]) about() about {
	a := aboutElements[T]()
	a.name = u.name
	return a
}

func (u *user[T]) commutes() bool { return u.commutative }

func (u *user[T]) wrong() error { return u.err }

func (u *user[T]) combineBytes(dst, left, right []byte) error {
	if u.err != nil {
		return u.err // memory can be no elements of this type
	}
	return applyBytes(u, dst, left, right)
}

func (u *user[T]) combine(dst, left, right []T) (err error) {
	n := len(dst)
	if u.err != nil || n == 0 {
		return u.err
	}
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Operator: Erased{u}.String(), Value: value, Stack: debug.Stack()}
		}
	}()
	// Without spare capacity, so that an append cannot write behind the elements.
	u.function(dst[:n:n], left[:n:n], right[:n:n])
	return nil
}
