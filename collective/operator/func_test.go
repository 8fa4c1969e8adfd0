package operator_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/collective/operator"
)

// text is a string of a fixed size: so many bytes, and what is behind does not count.
type text struct {
	length uint8
	bytes  [15]byte
}

// Strings that are put together tell in which order.
func TestFuncKeepsOrder(t *testing.T) {
	appended := operator.Func("append", false, func(dst, left, right []text) {
		for i := range dst {
			s := left[i]
			s.length += uint8(copy(s.bytes[s.length:], right[i].bytes[:right[i].length]))
			dst[i] = s
		}
	})
	require.NoError(t, appended.Err())
	require.False(t, appended.Commutative())
	require.Equal(t, "append/operator_test.text", appended.Erased().Name()+"/"+appended.Erased().TypeName())
	require.Equal(t, []int{16, 1}, []int{appended.Erased().ElementSize(), appended.Erased().Alignment()})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringN(0, 3, 3), 2, 5).Draw(t, "parts")
		intoLeft, erased := rapid.Bool().Draw(t, "into left"), rapid.Bool().Draw(t, "erased")
		apply := appended.Apply
		if erased {
			apply = func(dst, left, right []text) error {
				return appended.Erased().Apply(raw(t, dst), raw(t, left), raw(t, right))
			}
		}
		want := ""
		var ranks [][]text
		for _, part := range parts {
			want += part
			s := text{length: uint8(len(part))}
			copy(s.bytes[:], part)
			ranks = append(ranks, []text{s})
		}
		got := ranks[0]
		if intoLeft {
			for _, right := range ranks[1:] {
				require.NoError(t, apply(got, got, right))
			}
		} else {
			got = ranks[len(ranks)-1]
			for _, left := range slices.Backward(ranks[:len(ranks)-1]) {
				require.NoError(t, apply(got, left, got))
			}
		}
		require.Equal(t, want[:min(len(want), 15)], string(got[0].bytes[:got[0].length]))
	})
}

func TestFuncPanics(t *testing.T) {
	broken := errors.New("broken")
	one := make([]int, 1)
	for name, c := range map[string]struct {
		function func(dst, left, right []int)
		check    func(t *testing.T, err error)
	}{
		"with an error": {
			func(_, _, _ []int) { panic(broken) },
			func(t *testing.T, err error) { require.ErrorIs(t, err, broken) },
		},
		"with a value": {
			func(_, _, _ []int) { panic(42) },
			func(t *testing.T, err error) {
				require.EqualError(t, err, "operator: panics/int panicked: 42")
				require.NoError(t, errors.Unwrap(err))
			},
		},
		"with nothing": {
			func(_, _, _ []int) { panic(nil) },
			func(t *testing.T, err error) { require.ErrorAs(t, err, new(*runtime.PanicNilError)) },
		},
		"by itself": {
			func(dst, left, _ []int) { dst[len(left)] = 1 },
			func(t *testing.T, err error) { require.ErrorAs(t, err, new(runtime.Error)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			op := operator.Func("panics", true, c.function)
			require.NoError(t, op.Err())
			for _, err := range []error{op.Apply(one, one, one), op.Erased().Apply(raw(t, one), raw(t, one), raw(t, one))} {
				c.check(t, err)
				var panicked *operator.PanicError
				require.ErrorAs(t, err, &panicked)
				require.Equal(t, "panics/int", panicked.Operator)
				require.Contains(t, string(panicked.Stack), "func_test.go", "where it was")
			}
		})
	}
}

// A function that panicked is called again all the same.
func TestFuncGoesOn(t *testing.T) {
	op := operator.Func("divide", false, func(dst, left, right []int) {
		for i := range dst {
			dst[i] = left[i] / right[i]
		}
	})
	dst := make([]int, 1)
	require.ErrorAs(t, op.Apply(dst, []int{6}, []int{0}), new(*operator.PanicError))
	require.NoError(t, op.Apply(dst, []int{6}, []int{3}))
	require.Equal(t, []int{2}, dst)
}

func TestFuncIsGivenJustTheElements(t *testing.T) {
	calls := 0
	op := operator.Func("looks", false, func(dst, left, right []int16) {
		calls++
		for _, s := range [][]int16{dst, left, right} {
			require.Len(t, s, 3)
			require.Equal(t, 3, cap(s))
		}
	})
	memory := make([]int16, 20)
	require.NoError(t, op.Apply(memory[:3], memory[5:8], memory[10:13]))
	require.NoError(t, op.Erased().Apply(raw(t, memory[:3]), raw(t, memory[5:8]), raw(t, memory[10:13])))
	require.Equal(t, 2, calls)
	require.NoError(t, op.Apply(nil, nil, nil))
	require.NoError(t, op.Erased().Apply(nil, nil, nil))
	require.Equal(t, 2, calls, "there was nothing to do")
}

func TestFuncThatCannotBe(t *testing.T) {
	null := operator.Func[int]("nil", true, nil)
	require.ErrorIs(t, null.Err(), operator.ErrNoOperator)
	require.ErrorIs(t, null.Apply(nil, nil, nil), operator.ErrNoOperator)
	require.ErrorIs(t, null.Erased().Apply(nil, nil, nil), operator.ErrNoOperator)

	strings := operator.Func("of strings", true, func(_, _, _ []string) { t.Error("called") })
	want := &operator.TypeError{Type: "string", Found: "string"}
	require.Equal(t, want, strings.Err())
	require.Equal(t, want, strings.Apply(make([]string, 1), make([]string, 1), make([]string, 1)))
	require.Equal(t, want, strings.Erased().Apply(make([]byte, 16), make([]byte, 16), make([]byte, 16)))

	nothing := operator.Func("of nothing", true, func(_, _, _ []struct{}) { t.Error("called") })
	require.Equal(t, &operator.TypeError{Type: "struct {}"}, nothing.Erased().Apply(make([]byte, 1), nil, nil))
	require.Equal(t, &operator.TypeError{Type: "struct {}"}, nothing.Apply(make([]struct{}, 1), nil, nil))
}

func TestFuncDoesNotAllocate(t *testing.T) {
	factor := int64(3)
	op := operator.Func("weighted", false, func(dst, left, right []int64) {
		for i := range dst {
			dst[i] = left[i] + factor*right[i]
		}
	})
	dst, left, right := make([]int64, 9), make([]int64, 9), make([]int64, 9)
	d, l, r := raw(t, dst), raw(t, left), raw(t, right)
	var err error
	require.Zero(t, testing.AllocsPerRun(100, func() { err = errors.Join(op.Apply(dst, left, right), op.Erased().Apply(d, l, r)) }))
	require.NoError(t, err)
}
