package kernelcopy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuick(t *testing.T) {
	require.True(t, Measured{Copy: 1000, Kernel: 900}.Quick(), "one instead of two")
	require.False(t, Measured{Copy: 1000, Kernel: 4000}.Quick())
	require.False(t, Measured{Copy: 1000, Kernel: 1900}.Quick(), "it has to be worth it")
	require.False(t, Measured{Copy: 1000}.Quick(), "it is forbidden")
	require.False(t, Measured{}.Quick())
}
