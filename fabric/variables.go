package fabric

import (
	"cmp"
	"slices"

	"github.com/weft-go/weft/cgo"
)

// VariableType says how the value of an environment variable is read.
type VariableType uint32

// The types of variables.
const (
	VariableText    VariableType = VariableType(cgo.ParamString) // FI_PARAM_STRING
	VariableInteger VariableType = VariableType(cgo.ParamInt)    // FI_PARAM_INT
	VariableBoolean VariableType = VariableType(cgo.ParamBool)   // FI_PARAM_BOOL: 0 or 1, no or yes, off or on
	VariableSize    VariableType = VariableType(cgo.ParamSize)   // FI_PARAM_SIZE_T
)

var variableTypeNames = names[VariableType]{
	VariableText: "text", VariableInteger: "integer", VariableBoolean: "boolean", VariableSize: "size",
}

// String is the type in words.
func (t VariableType) String() string { return variableTypeNames.of(t) }

// Variable is an environment variable that libfabric, or one of its providers,
// looks at.
type Variable struct {
	Name string       // such as "FI_PROVIDER"
	Type VariableType // how its value is read
	Help string       // what it does, in the words of libfabric
	// Value is what the process's environment says, if Set. Of the few that weft itself
	// sets while the providers are loaded, and only then, it is what they have read.
	Value string
	Set   bool // the variable is there, if only as an empty text
}

// Variables lists the environment variables that this library and its
// providers have, by name. Most are read once: to have an effect, a variable is
// set before the first Discover of the process. Any goroutine may call it; the
// first call loads the providers. The slice is the caller's.
//
// Implements: int fi_getparams(...), fi_freeparams(...)
func Variables() ([]Variable, error) {
	if err := available("fi_getparams", ""); err != nil {
		return nil, err
	}
	load()
	params, code := cgo.Params()
	if code != 0 {
		return nil, fail("fi_getparams", "", int(code))
	}
	list := make([]Variable, len(params))
	for i, p := range params {
		list[i] = Variable{Name: p.Name, Type: VariableType(p.Type), Help: p.Help, Value: p.Value, Set: p.Set}
		if read, ours := loaded[p.Name]; ours {
			list[i].Value, list[i].Set = read, true
		}
	}
	slices.SortStableFunc(list, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}
