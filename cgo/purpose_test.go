package cgo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each purpose has a name of its own.
func TestPurposes(t *testing.T) {
	names := make(map[string]bool)
	for p := range purposes {
		require.NotEmpty(t, p.String())
		names[p.String()] = true
	}
	require.Len(t, names, int(purposes))
}
