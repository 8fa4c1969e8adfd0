package fabric_test

import (
	"context"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// ofNothing are the methods that do not answer ErrInvalid on a handle that was never
// opened: those of a region's description, which needs no handle.
var ofNothing = []string{"MappedRegion.AppendBinary", "MappedRegion.At", "MappedRegion.MarshalBinary", "MappedRegion.UnmarshalBinary"}

// fillers make arguments that a program has by mistake, by type.
var fillers = map[string]func(reflect.Type) reflect.Value{
	"nothing":        reflect.Zero,
	"zero values":    zeroValue,
	"small numbers":  func(t reflect.Type) reflect.Value { return number(t, math.MinInt64, 0) },
	"large numbers":  func(t reflect.Type) reflect.Value { return number(t, math.MaxInt64, math.MaxUint64) },
	"the last bit":   func(t reflect.Type) reflect.Value { return number(t, -1, 1<<63) },
	"one and nobody": func(t reflect.Type) reflect.Value { return number(t, 1, 1) },
}

// zeroValue is something of the type that is there, and was never opened or filled in.
func zeroValue(t reflect.Type) reflect.Value {
	switch t.Kind() {
	case reflect.Pointer:
		return reflect.New(t.Elem())
	case reflect.Slice:
		return reflect.MakeSlice(t, 1, 1)
	}
	return reflect.Zero(t)
}

// number is a number of the type, cut off to what that holds.
func number(t reflect.Type, signed int64, unsigned uint64) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[time.Duration]():
		v.SetInt(-1)
	case v.CanInt():
		v.SetInt(signed >> (64 - t.Bits()))
	case v.CanUint():
		v.SetUint(unsigned >> (64 - t.Bits()))
	default:
		return zeroValue(t)
	}
	return v
}

// patient are the methods that do what large numbers ask for: look, or wait, so often.
var patient = []string{"Read", "ReadWait", "Turn", "TurnWait", "Wait"}

// lasting are the methods whose work is not at its end when they return, or that give what
// is theirs.
var lasting = []string{"Deferred.Counter", "Endpoint.Shutdown", "Group.Barrier"}

// callWith calls a method with arguments of a filler, and notes what panics.
func callWith(t *testing.T, name string, handle reflect.Value, m reflect.Method, fill func(reflect.Type) reflect.Value) (results []reflect.Value) {
	t.Helper()
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	call := handle.MethodByName(m.Name)
	var in []reflect.Value
	for i := range call.Type().NumIn() {
		switch p := call.Type().In(i); {
		case call.Type().IsVariadic() && i == call.Type().NumIn()-1:
		case p == reflect.TypeFor[context.Context]():
			in = append(in, reflect.ValueOf(soon))
		default:
			in = append(in, fill(p))
		}
	}
	assert.NotPanics(t, func() { results = call.Call(in) }, name)
	return results
}

// A handle that was never opened says so, by every method, whatever it is called with.
func TestEveryMethodOfZeroValues(t *testing.T) {
	tried := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(builders)) {
		t.Run(name, func(t *testing.T) {
			for _, x := range discarded(t, builders[name]).list {
				zero := reflect.New(reflect.TypeOf(x.handle).Elem())
				for _, m := range x.methods() {
					what := x.name + "." + m.Name
					for with, fill := range fillers {
						results := callWith(t, what+" with "+with, zero, m, fill)
						if err, has := failure(results); has && !slices.Contains(ofNothing, what) {
							assert.ErrorIs(t, err, fabric.ErrInvalid, what+" with "+with)
						}
					}
				}
				tried[x.name] = true
			}
		})
	}
	require.Subset(t, slices.Collect(maps.Keys(tried)), closable(t), "handles of which no method was tried")
	require.Equal(t, -1, new(fabric.CompletionQueue).WaitDescriptor(), "0 would be a file of the program's")
	require.Equal(t, -1, new(fabric.EventQueue).WaitDescriptor(), "0 would be a file of the program's")
	require.Empty(t, new(fabric.ConnectionRequest).Info().Provider())
	require.NotEmpty(t, new(fabric.ConnectionError).Error())
}

// No method takes what is not there, was never opened, or cannot be so large, for something:
// it is an error or it works, and everything can be closed afterwards.
func TestEveryMethodWithWrongArguments(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(builders)) {
		for with, fill := range fillers {
			t.Run(name+" with "+with, func(t *testing.T) {
				s := build(t, builders[name])
				for _, x := range s.list {
					for _, m := range x.methods() {
						if m.Name == "Close" || slices.Contains(lasting, x.name+"."+m.Name) || slices.Contains(patient, m.Name) && with != "nothing" {
							continue
						}
						undo(t, x.name+"."+m.Name, callWith(t, x.name+"."+m.Name, reflect.ValueOf(x.handle), m, fill))
					}
				}
				s.closeTo(0)
				nothingOpen(t)
			})
		}
	}
}

// undo gives back what a call has opened.
func undo(t *testing.T, what string, results []reflect.Value) {
	t.Helper()
	if err, _ := failure(results); err != nil {
		return
	}
	for _, r := range results {
		switch opened := r.Interface().(type) {
		case fabric.Buffer:
			require.NoError(t, opened.Put(), what)
		case interface{ Close() error }:
			require.NoError(t, opened.Close(), what)
		}
	}
}
