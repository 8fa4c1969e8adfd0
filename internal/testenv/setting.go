package testenv

import (
	"os"
	"testing"
)

// Setting is what an environment variable says of how much a test is to do, or value where
// it is not set. The test ends if parse cannot read it. Call it on the test's own goroutine.
func Setting[T any](t testing.TB, name string, value T, parse func(string) (T, error)) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return value
	}
	value, err := parse(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return value
}
