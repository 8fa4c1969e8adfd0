package efa

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// An idle connection is to take no more than 4 KiB (P11 of docs/PERFORMANCE.md), of which
// the Conn is the largest part. Beyond 1152 bytes Go's allocator gives it 1280.
func TestConnFitsItsSizeClass(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Conn{}), uintptr(1152))
}
