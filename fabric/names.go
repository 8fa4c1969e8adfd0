package fabric

import "strconv"

// names are what the values of a type are called where libfabric has no
// function for it.
type names[T ~int | ~int32 | ~uint32] map[T]string

// of is the name of a value, and "unknown" where it has none.
func (n names[T]) of(value T) string {
	if name := n[value]; name != "" {
		return name
	}
	return "unknown"
}

// numbered is the name of a value, and its number behind what it is where it
// has none.
func (n names[T]) numbered(value T, what string) string {
	if name := n[value]; name != "" {
		return name
	}
	return what + strconv.Itoa(int(value))
}
