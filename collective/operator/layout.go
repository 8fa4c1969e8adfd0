package operator

import (
	"reflect"
	"sync"
)

// Check says whether values of T can be elements: memory of a fixed size, at least a
// byte, without pointers. So they have no strings, slices, maps, channels, functions,
// interfaces or pointers in them, not even in a field of a field. The error is a
// *[TypeError] and names the field.
//
// A type is looked into once. For numbers and bools the answer costs a look at the
// kind, for others a look into a map.
func Check[T any]() error { return check(reflect.TypeFor[T]()) }

// checked has what check has found, by reflect.Type: a *TypeError, nil if all is well.
// There are no more entries than the program has types.
var checked sync.Map

func check(t reflect.Type) error {
	if flat(t.Kind()) {
		return nil
	}
	found, known := checked.Load(t)
	if !known {
		found, _ = checked.LoadOrStore(t, look(t))
	}
	if wrong := found.(*TypeError); wrong != nil {
		return wrong
	}
	return nil
}

func flat(kind reflect.Kind) bool { return reflect.Bool <= kind && kind <= reflect.Complex128 }

// look says what is wrong with a type.
func look(t reflect.Type) *TypeError {
	if path, found := pointer(t); found != nil {
		return &TypeError{Type: t.String(), Path: path, Found: found.String()}
	}
	if t.Size() == 0 {
		return &TypeError{Type: t.String()}
	}
	return nil
}

// pointer finds the first part of a type that has pointers, nil if there is none.
func pointer(t reflect.Type) (path string, found reflect.Type) {
	switch {
	case flat(t.Kind()):
	case t.Kind() == reflect.Array:
		// [0]func() is how a struct says that it cannot be compared. It has no pointer.
		if t.Len() > 0 {
			path, found = pointer(t.Elem())
			path = "[]" + path
		}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if path, found = pointer(field.Type); found != nil {
				return "." + field.Name + path, found
			}
		}
	default:
		found = t
	}
	return path, found
}
