package fabric

import (
	"strconv"
	"strings"
)

// names are what the values of a type are called where libfabric has no
// function for it.
type names[T ~int | ~int32 | ~uint8 | ~uint32 | ~uint64] map[T]string

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

// setNames are what the bits of a set are called where libfabric has no function for
// it, in the order of listing.
type setNames[T ~uint64] []struct {
	value T
	name  string
}

// list names the bits of a set, "none" if there are none, and the number of those
// without a name.
func (n setNames[T]) list(set T) string {
	var parts []string
	for _, b := range n {
		if set&b.value != 0 {
			parts = append(parts, b.name)
			set &^= b.value
		}
	}
	if set != 0 {
		parts = append(parts, "0x"+strconv.FormatUint(uint64(set), 16))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
