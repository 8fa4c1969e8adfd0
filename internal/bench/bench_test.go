package bench

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.Equal(t, 3.0, Median([]float64{9, 3, 1}))
	require.Equal(t, 2.0, Median([]float64{9, 3, 1, 1}))
	require.Equal(t, []float64{2, 0.5}, Ratios([]float64{4, 1}, []float64{2, 2}))
}

func TestOutput(t *testing.T) {
	_, err := Output(context.Background(), []string{"/nowhere/program"})
	require.ErrorContains(t, err, "/nowhere/program")
	require.ErrorIs(t, NotHereError{err}, errors.Unwrap(err))

	var said Complaint
	for range 100 {
		n, err := said.Write([]byte(strings.Repeat("x", 100)))
		require.NoError(t, err)
		require.Equal(t, 100, n)
	}
	require.Equal(t, 4096, said.Len())
}

// A figure without its machine says nothing.
func TestDescribe(t *testing.T) {
	e := Describe(context.Background())
	require.NotEqual(t, Unknown, e.Kernel)
	require.NotEqual(t, Unknown, e.Processor)
	require.Positive(t, e.Cores)
	require.NotEmpty(t, e.Libfabric)
	require.NotEmpty(t, e.Commit)
	var text strings.Builder
	e.Print(&text)
	require.Contains(t, text.String(), "commit "+e.Commit)
}
