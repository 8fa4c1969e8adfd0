package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The values of constants are those of the headers that the stub was made with, and
// are of no account.
var values = regexp.MustCompile(`(?m) += .*$`)

func TestStubIsUpToDate(t *testing.T) {
	t.Chdir("../..")
	made, err := stubOf("./cgo")
	require.NoError(t, err)
	there, err := os.ReadFile("cgo/stub.go")
	require.NoError(t, err)
	require.Equal(t, values.ReplaceAllString(string(made), ""), values.ReplaceAllString(string(there), ""),
		"cgo/stub.go is not what package cgo is: go run ./scripts/stub")
}
