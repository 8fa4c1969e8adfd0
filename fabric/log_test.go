package fabric_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testprocess"
)

const logChild = "WEFT_TEST_LOG_CHILD"

// The log is the process's, and goes to its standard error: a process of its
// own tries it.
func TestLogLevelAtRunTime(t *testing.T) {
	if os.Getenv(logChild) != "" {
		logAtLevels(t)
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	child := testprocess.Command(t, self, "-test.run=^TestLogLevelAtRunTime$", "-test.count=1")
	child.Env = append(os.Environ(), logChild+"=1")
	output, err := child.CombinedOutput()
	require.NoError(t, err, "%s", output)
	quiet, rest, ok := strings.Cut(string(output), "== loud ==")
	require.True(t, ok, "%s", output)
	loud, off, ok := strings.Cut(rest, "== off ==")
	require.True(t, ok, "%s", output)
	require.NotContains(t, quiet, "libfabric:")
	require.Contains(t, loud, "<info>")
	require.NotContains(t, loud, "<debug>")
	require.NotContains(t, off, "libfabric:")
}

func logAtLevels(t *testing.T) {
	look := func() {
		_, err := fabric.Discover(fabric.Hints{Provider: "nonesuch"})
		require.ErrorIs(t, err, fabric.ErrNotFound)
	}
	look()
	fmt.Fprintln(os.Stderr, "== loud ==")
	require.NoError(t, fabric.SetLogLevel(fabric.LogInfo))
	look()
	require.NoError(t, fabric.SetLogLevel(fabric.LogOff))
	fmt.Fprintln(os.Stderr, "== off ==")
	look()
}

func TestLogLevels(t *testing.T) {
	require.ErrorIs(t, fabric.SetLogLevel(-2), fabric.ErrInvalid)
	require.ErrorIs(t, fabric.SetLogLevel(fabric.LogDebug+1), fabric.ErrInvalid)
	require.Equal(t, "off", fabric.LogOff.String())
	require.Equal(t, "warn", fabric.LogWarn.String())
	require.Equal(t, "debug", fabric.LogDebug.String())
}
