package fabric_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestVariables(t *testing.T) {
	variables, err := fabric.Variables()
	require.NoError(t, err)
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.Name
		require.NotEqual(t, "unknown", v.Type.String(), v.Name)
	}
	require.True(t, slices.IsSorted(names))
	require.Subset(t, names, []string{"FI_PROVIDER", "FI_LOG_LEVEL", "FI_UNIVERSE_SIZE"})
	at := slices.Index(names, "FI_UNIVERSE_SIZE")
	require.NotEmpty(t, variables[at].Help)
	require.False(t, variables[at].Set && variables[at].Value == "")
}
