package fabric_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
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

// The provider would take memory that Go mapped anew for what was there before.
func TestRegistrationsAreNotCached(t *testing.T) {
	const name = "FI_EFA_MR_CACHE_ENABLE"
	variables, err := fabric.Variables()
	require.NoError(t, err)
	if _, decided := os.LookupEnv("FI_MR_CACHE_MONITOR"); !decided {
		require.Equal(t, "0", os.Getenv(name))
	}
	for _, v := range variables {
		if v.Name == name {
			require.True(t, v.Set)
			require.Equal(t, os.Getenv(name), v.Value)
			return
		}
	}
	require.NotContains(t, testenv.Providers(), "efa", "a provider without the variable")
}
