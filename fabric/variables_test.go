package fabric_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
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

// A process that has set nothing has tcp save no messages, and one that has decides.
func TestMessagesAreNotSaved(t *testing.T) {
	const name, child = "FI_TCP_MAX_SAVED", "WEFT_TEST_SAVED"
	if os.Getenv(child) != "" {
		variables, err := fabric.Variables()
		require.NoError(t, err)
		if i := slices.IndexFunc(variables, func(v fabric.Variable) bool { return v.Name == name }); i >= 0 {
			require.Equal(t, os.Getenv(name), variables[i].Value)
		} else {
			require.Less(t, fabric.LibraryVersion().Major, 2)
		}
		fmt.Println("saved:" + os.Getenv(name))
		return
	}
	others := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, name+"=") })
	byItself := "saved:0\n"
	if v := fabric.LibraryVersion(); v.Major == 1 && v.Minor < 18 {
		byItself = "saved:\n" // It has no such endpoints.
	}
	for given, want := range map[string]string{"": byItself, name + "=7": "saved:7\n"} {
		command := testprocess.Command(t, os.Args[0], "-test.run=^TestMessagesAreNotSaved$", "-test.count=1")
		command.Env = append(slices.Clone(others), child+"=yes")
		if given != "" {
			command.Env = append(command.Env, given)
		}
		said, err := command.Output()
		require.NoError(t, err, "%s", said)
		require.Contains(t, string(said), want)
	}
}
