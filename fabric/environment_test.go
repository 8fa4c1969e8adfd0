package fabric_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// With some variables, libfabric does what nothing keeps from ending the process.
func TestEnvironmentThatCouldEndTheProcess(t *testing.T) {
	const child = "WEFT_TEST_OPENS"
	const hook, write = "FI_HOOK", "FI_OFI_RXM_USE_RNDV_WRITE"
	if provider := os.Getenv(child); provider != "" {
		choice, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Source: "127.0.0.1"})
		require.NoError(t, err)
		// What counts is what libfabric was loaded with.
		require.NoError(t, os.Unsetenv(hook))
		f, err := choice.Info.OpenFabric()
		if name := os.Getenv("WEFT_TEST_NAMES"); name != "" {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
			require.ErrorContains(t, err, name)
			return
		}
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return
	}
	others := slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, hook+"=") || strings.HasPrefix(s, write+"=")
	})
	for _, given := range []struct{ provider, setting, names string }{
		{"sockets", hook + "=perf", hook},
		{"tcp", hook + "=perf", hook},
		{"tcp", hook + "=", ""},
		{"tcp", write + "=1", write},
		{"tcp", write + "=no", ""},
		{"sockets", write + "=yes", ""},
	} {
		if !slices.Contains(testenv.Providers(), given.provider) {
			continue
		}
		t.Run(given.provider+" "+given.setting, func(t *testing.T) {
			command := testprocess.Command(t, os.Args[0], "-test.run=^TestEnvironmentThatCouldEndTheProcess$", "-test.count=1")
			command.Env = append(slices.Clone(others), given.setting, child+"="+given.provider, "WEFT_TEST_NAMES="+given.names)
			said, err := command.CombinedOutput()
			require.NoError(t, err, "%s", said)
		})
	}
}
