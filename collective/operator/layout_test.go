package operator_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/operator"
)

type particle struct {
	Position [3]float64
	_        [3]byte
	Charge   int8
	Kind     struct{ Colour uint16 }
	_        [0]func() // not to be compared
}

type molecule struct {
	Atoms [2][4]struct {
		particle
		Label string
	}
}

type node struct {
	Value int
	Next  *node
}

func TestCheck(t *testing.T) {
	for _, err := range []error{
		operator.Check[bool](), operator.Check[int8](), operator.Check[uint](), operator.Check[uintptr](),
		operator.Check[float32](), operator.Check[complex128](), operator.Check[operator.Float16](),
		operator.Check[[1]byte](), operator.Check[[2][3]int](), operator.Check[particle](), operator.Check[[1 << 20]particle](),
		operator.Check[operator.Located[operator.BFloat16]](), operator.Check[struct {
			_ struct{}
			b bool
		}](),
	} {
		require.NoError(t, err)
	}
	for _, c := range []struct {
		err              error
		typ, path, found string
	}{
		{operator.Check[string](), "string", "", "string"},
		{operator.Check[*int](), "*int", "", "*int"},
		{operator.Check[unsafe.Pointer](), "unsafe.Pointer", "", "unsafe.Pointer"},
		{operator.Check[any](), "interface {}", "", "interface {}"},
		{operator.Check[error](), "error", "", "error"},
		{operator.Check[func()](), "func()", "", "func()"},
		{operator.Check[[]byte](), "[]uint8", "", "[]uint8"},
		{operator.Check[map[int]int](), "map[int]int", "", "map[int]int"},
		{operator.Check[chan int](), "chan int", "", "chan int"},
		{operator.Check[[2]string](), "[2]string", "[]", "string"},
		{operator.Check[node](), "operator_test.node", ".Next", "*operator_test.node"},
		{operator.Check[molecule](), "operator_test.molecule", ".Atoms[][].Label", "string"},
		{operator.Check[struct{}](), "struct {}", "", ""},
		{operator.Check[[0]int](), "[0]int", "", ""},
		{operator.Check[[0]*int](), "[0]*int", "", ""},
		{operator.Check[[5]struct{ _ [0]string }](), "[5]struct { _ [0]string }", "", ""},
	} {
		require.Equal(t, &operator.TypeError{Type: c.typ, Path: c.path, Found: c.found}, c.err)
	}
	require.EqualError(t, operator.Check[molecule](),
		"operator: operator_test.molecule.Atoms[][].Label is string, want memory of a fixed size without pointers")
	require.EqualError(t, operator.Check[struct{}](), "operator: struct {} has size 0, want at least a byte")
}

func TestCheckManyGoroutines(t *testing.T) {
	type fresh struct{ A, B, C [2]node }
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = operator.Check[fresh]() })
	}
	all.Wait()
	for _, err := range errs {
		require.Equal(t, &operator.TypeError{Type: "operator_test.fresh", Path: ".A[].Next", Found: "*operator_test.node"}, err)
	}
}

func TestBytes(t *testing.T) {
	numbers := []uint16{1, 2, 3}
	memory, err := operator.Bytes(numbers)
	require.NoError(t, err)
	require.Len(t, memory, 6)
	require.Equal(t, 6, cap(memory))
	back, err := operator.Elements[uint16](memory)
	require.NoError(t, err)
	require.Equal(t, numbers, back)
	require.Same(t, &numbers[0], &back[0])
	clear(memory[2:4])
	require.Equal(t, []uint16{1, 0, 3}, numbers)

	for _, none := range [][]uint64{nil, {}, make([]uint64, 0, 5), make([]uint64, 5)[5:]} {
		memory, err := operator.Bytes(none)
		require.NoError(t, err)
		require.Empty(t, memory)
	}
	for _, none := range [][]byte{nil, {}, make([]byte, 5)[5:]} {
		elements, err := operator.Elements[uint64](none)
		require.NoError(t, err)
		require.Empty(t, elements)
	}
	particles := make([]particle, 3)
	particles[1].Kind.Colour = 7
	memory, err = operator.Bytes(particles)
	require.NoError(t, err)
	require.Len(t, memory, 3*int(unsafe.Sizeof(particle{})))
	others, err := operator.Elements[particle](memory)
	require.NoError(t, err)
	require.Equal(t, particles[1].Kind, others[1].Kind)
}

func TestBytesOfWhatHasNone(t *testing.T) {
	_, err := operator.Bytes([]string{"a"})
	require.Equal(t, &operator.TypeError{Type: "string", Found: "string"}, err)
	_, err = operator.Bytes(make([]struct{}, 3))
	require.Equal(t, &operator.TypeError{Type: "struct {}"}, err)
	_, err = operator.Elements[node](make([]byte, 16))
	require.Equal(t, &operator.TypeError{Type: "operator_test.node", Path: ".Next", Found: "*operator_test.node"}, err)
	_, err = operator.Elements[[0]int](make([]byte, 16))
	require.Equal(t, &operator.TypeError{Type: "[0]int"}, err)
}

// Memory that is not of elements is refused, and nothing else is.
func TestElements(t *testing.T) {
	memory := raw(t, make([]uint64, 8))
	for begin := range 9 {
		for length := range 40 {
			part := memory[begin : begin+length]
			elements, err := operator.Elements[operator.Located[int8]](part)
			if length%16 == 0 && (begin%8 == 0 || length == 0) {
				require.NoError(t, err)
				require.Len(t, elements, length/16)
				continue
			}
			misaligned := begin % 8
			require.Equal(t, &operator.ViewError{
				Type: "operator.Located[int8]", Length: length, Size: 16, Misaligned: misaligned, Alignment: 8,
			}, err)
		}
	}
}

// Types of all kinds, made of what the fuzzer says. The model knows from the making what
// is wrong with them.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Add([]byte{21, 3, 20, 2, 5, 13, 22, 4})
	f.Add([]byte{21, 2, 20, 0, 14, 4})
	f.Add([]byte{20, 2, 20, 3, 21, 1, 16})
	f.Add([]byte{21, 4, 1, 21, 0, 20, 0, 19, 23})
	f.Fuzz(func(t *testing.T, recipe []byte) {
		typ, pointers := makeType(bytes.NewReader(recipe), 4)
		err := operator.CheckType(typ)
		require.Equal(t, err, operator.CheckType(typ))
		if !pointers && typ.Size() > 0 {
			require.NoError(t, err, "%v", typ)
			return
		}
		var wrong *operator.TypeError
		require.True(t, errors.As(err, &wrong), "%v", typ)
		require.Equal(t, typ.String(), wrong.Type)
		if !pointers {
			require.Equal(t, operator.TypeError{Type: typ.String()}, *wrong)
			return
		}
		found := follow(t, typ, wrong.Path)
		require.Equal(t, found.String(), wrong.Found)
		require.Contains(t, pointed, found)
	})
}

var pointed = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[*int](), reflect.TypeFor[[]byte](), reflect.TypeFor[map[int]string](),
	reflect.TypeFor[chan int](), reflect.TypeFor[func()](), reflect.TypeFor[any](), reflect.TypeFor[error](),
	reflect.TypeFor[unsafe.Pointer](),
}

var flat = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[uint16](), reflect.TypeFor[float32](),
	reflect.TypeFor[int64](), reflect.TypeFor[complex128](), reflect.TypeFor[uintptr](), reflect.TypeFor[operator.Float16](),
	reflect.TypeFor[particle](), reflect.TypeFor[struct{}](), reflect.TypeFor[operator.Located[int8]](),
}

// makeType makes a type, and knows whether it has pointers.
func makeType(recipe *bytes.Reader, depth int) (t reflect.Type, pointers bool) {
	next := func(below int) int {
		b, _ := recipe.ReadByte()
		return int(b) % below
	}
	kind := next(len(flat) + len(pointed) + 4)
	switch {
	case kind < len(flat):
		return flat[kind], false
	case kind < len(flat)+len(pointed):
		return pointed[kind-len(flat)], true
	case depth == 0:
		return flat[0], false
	case kind%2 == 0:
		length := next(4)
		element, pointers := makeType(recipe, depth-1)
		return reflect.ArrayOf(length, element), pointers && length > 0
	}
	var fields []reflect.StructField
	for i := range next(5) {
		field, has := makeType(recipe, depth-1)
		fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: field})
		pointers = pointers || has
	}
	return reflect.StructOf(fields), pointers
}

// follow is the type at the end of a path.
func follow(t *testing.T, typ reflect.Type, path string) reflect.Type {
	for path != "" {
		if rest, array := strings.CutPrefix(path, "[]"); array {
			require.Equal(t, reflect.Array, typ.Kind())
			typ, path = typ.Elem(), rest
			continue
		}
		require.Equal(t, reflect.Struct, typ.Kind())
		field, there := typ.FieldByName(path[1:2])
		require.True(t, there, "%v has no %s", typ, path)
		typ, path = field.Type, path[2:]
	}
	return typ
}
