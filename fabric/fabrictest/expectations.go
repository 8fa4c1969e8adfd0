package fabrictest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The suite is for other people's tests, so it does not choose their library of
// assertions. Each of these ends the test if what it says is not so; about is a
// format and its arguments.

func noError(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v%s", err, words(about))
	}
}

func anError(t testing.TB, err error, about ...any) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error where one must be%s", words(about))
	}
}

func errorIs(t testing.TB, err, want error, about ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, and not %v%s", err, want, words(about))
	}
}

func errorSays(t testing.TB, err error, text string, about ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("the error is %v, and does not say %q%s", err, text, words(about))
	}
}

func equal[T any](t testing.TB, want, got T, about ...any) {
	t.Helper()
	if !same(want, got) {
		t.Fatalf("it is %s, and not %s%s", shown(got), shown(want), words(about))
	}
}

func zero[T comparable](t testing.TB, got T, about ...any) {
	t.Helper()
	var none T
	if got != none {
		t.Fatalf("it is %v, and not %v%s", got, none, words(about))
	}
}

func isTrue(t testing.TB, ok bool, about ...any) {
	t.Helper()
	if !ok {
		t.Fatalf("it is not so%s", words(about))
	}
}

func same(want, got any) bool {
	if w, ok := want.([]byte); ok {
		return bytes.Equal(w, got.([]byte))
	}
	return reflect.DeepEqual(want, got)
}

// shown keeps long values short.
func shown(v any) string {
	text := fmt.Sprintf("%v", v)
	if s, ok := v.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

func words(about []any) string {
	if len(about) == 0 {
		return ""
	}
	format, ok := about[0].(string)
	if !ok {
		return ": " + fmt.Sprint(about...)
	}
	return ": " + fmt.Sprintf(format, about[1:]...)
}
