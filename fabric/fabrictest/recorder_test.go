package fabrictest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A recorded test ends as any other does, and the test around it goes on.
func TestRecorder(t *testing.T) {
	var order []string
	r := record(t, func(tb testing.TB) {
		tb.Cleanup(func() { order = append(order, "first") })
		tb.Cleanup(func() {
			order = append(order, "last")
			tb.Fatal("in a cleanup")
		})
		require.NoError(t, tb.Context().Err())
		tb.Errorf("not the end, %d", 1)
		tb.Fatal("the end")
		order = append(order, "beyond")
	})
	require.True(t, r.Failed())
	require.False(t, r.Skipped())
	require.Equal(t, []string{"last", "first"}, order)
	require.Equal(t, []string{"not the end, 1", "the end", "in a cleanup"}, r.said())
	require.Error(t, r.Context().Err())
	require.False(t, t.Failed())

	r = record(t, func(tb testing.TB) {
		r := tb.(*recorder)
		r.run("one", func(tb testing.TB) { tb.Log("said") })
		r.run("two", func(tb testing.TB) { tb.(*recorder).Skipf("no %s", "device") })
	})
	require.False(t, r.Failed())
	require.False(t, r.allSkipped(), "one has run")
	require.Equal(t, []string{"said", "no device"}, r.said())

	r = record(t, func(tb testing.TB) {
		tb.(*recorder).run("one", func(tb testing.TB) { tb.FailNow() })
	})
	require.True(t, r.Failed(), "with what is within it")
	require.False(t, record(t, func(testing.TB) {}).allSkipped())
}

// Each expectation fails where it must, and says what it was.
func TestExpectations(t *testing.T) {
	for want, check := range map[string]func(tb testing.TB){
		"unexpected error: truncated: at 7":          func(tb testing.TB) { noError(tb, errText("truncated"), "at %d", 7) },
		"no error where one must be":                 func(tb testing.TB) { anError(tb, nil) },
		"the error is a, and not b":                  func(tb testing.TB) { errorIs(tb, errText("a"), errText("b")) },
		`the error is a, and does not say "b"`:       func(tb testing.TB) { errorSays(tb, errText("a"), "b") },
		`the error is <nil>, and does not say "b"`:   func(tb testing.TB) { errorSays(tb, nil, "b") },
		"it is 2, and not 1":                         func(tb testing.TB) { equal(tb, 1, 2) },
		`it is "2", and not "1"`:                     func(tb testing.TB) { equal(tb, "1", "2") },
		"it is [1 2], and not [1]":                   func(tb testing.TB) { equal(tb, []byte{1}, []byte{1, 2}) },
		"it is map[1:true], and not map[]: the keys": func(tb testing.TB) { equal(tb, map[int]bool{}, map[int]bool{1: true}, "the keys") },
		"it is 3, and not 0":                         func(tb testing.TB) { zero(tb, 3) },
		"it is not so: x":                            func(tb testing.TB) { isTrue(tb, false, "x") },
	} {
		r := record(t, check)
		require.True(t, r.Failed(), want)
		require.Equal(t, []string{want}, r.said())
	}
	r := record(t, func(tb testing.TB) {
		noError(tb, nil)
		anError(tb, errText("a"))
		errorIs(tb, errText("a"), errText("a"))
		errorSays(tb, errText("abc"), "b")
		equal(tb, []byte(nil), []byte{})
		equal(tb, []int{1}, []int{1})
		zero(tb, 0)
		isTrue(tb, true)
	})
	require.False(t, r.Failed(), "%q", r.said())
}

type errText string

func (e errText) Error() string { return string(e) }
