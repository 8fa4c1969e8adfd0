package operator

import (
	"reflect"
	"strings"
	"unsafe"
)

// Erased is an operator without the type of its elements, which are bytes instead. It
// never changes, and any number of goroutines may use one at the same time. The zero
// Erased is no operator: its Apply returns [ErrNoOperator].
type Erased struct{ body anyBody }

// anyBody is a body of any T.
type anyBody interface {
	about() about
	// commutes and wrong are of about, which takes a tenth of a short call.
	commutes() bool
	wrong() error
	// combineBytes is Erased.Apply.
	combineBytes(dst, left, right []byte) error
}

// about is what there is to know about an operator.
type about struct {
	name            string
	builtin         bool
	element         reflect.Type
	size, alignment int
}

func aboutElements[T any]() about {
	return about{element: reflect.TypeFor[T](), size: int(unsafe.Sizeof(*new(T))), alignment: int(unsafe.Alignof(*new(T)))}
}

func (e Erased) about() about {
	if e.body == nil {
		return about{name: "none", element: reflect.TypeFor[struct{}](), alignment: 1}
	}
	return e.body.about()
}

// Name is the operator's own, such as "sum".
func (e Erased) Name() string { return e.about().name }

// TypeName is the Go type of an element, such as "float64".
func (e Erased) TypeName() string { return e.about().element.String() }

// own removes the name of this package, and its path, which type arguments have.
var own = strings.NewReplacer(reflect.TypeFor[Float16]().PkgPath()+".", "", "operator.", "")

// String is the name of the operator and of its elements' type, such as
// "sum/float64".
func (e Erased) String() string { return e.Name() + "/" + own.Replace(e.TypeName()) }

// ElementSize is the size of an element in bytes.
func (e Erased) ElementSize() int { return e.about().size }

// Alignment is what the addresses of elements are multiples of, in bytes.
func (e Erased) Alignment() int { return e.about().alignment }

// Commutative says that left and right may be exchanged.
func (e Erased) Commutative() bool { return e.body != nil && e.body.commutes() }

// Builtin says that it is one of this package's, and its Name says which.
func (e Erased) Builtin() bool { return e.about().builtin }

// Err is [Op.Err].
func (e Erased) Err() error {
	if e.body == nil {
		return ErrNoOperator
	}
	return e.body.wrong()
}

// Apply is [Op.Apply] of the bytes of elements. Memory that does not begin where elements
// may, or is no whole number of them, is a *[ViewError].
func (e Erased) Apply(dst, left, right []byte) error {
	if e.body == nil {
		return ErrNoOperator
	}
	return e.body.combineBytes(dst, left, right)
}

func applyBytes[T any](b body[T], dst, left, right []byte) error {
	d, err := view[T](dst)
	if err != nil {
		return err
	}
	l, err := view[T](left)
	if err != nil {
		return err
	}
	r, err := view[T](right)
	if err != nil {
		return err
	}
	return apply(b, d, l, r)
}
