package weft_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that carries weft as an option is built without cgo, and runs: whatever it
// opens is ErrNotSupported, and says what would be right.
func TestWithoutCgo(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./testdata/optional", "./cmd/weft")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	const right = "this program was built without cgo, and calls libfabric through that: build it with CGO_ENABLED=1, a C compiler and the headers of libfabric"
	out, err = exec.CommandContext(t.Context(), filepath.Join(dir, "optional")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 10)
	require.Equal(t, "over TCP, then", lines[9])
	for _, line := range lines[:9] {
		require.Contains(t, line, right)
	}

	for _, arguments := range [][]string{{"info"}, {"doctor"}, {"ping", "--serve", "--listen", "127.0.0.1:0"}, {"send", "go.mod", "127.0.0.1:1"}} {
		weft := exec.CommandContext(t.Context(), filepath.Join(dir, "weft"), arguments...)
		out, err := weft.CombinedOutput()
		require.Contains(t, string(out), right, arguments)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, arguments)
		require.Equal(t, 3, exit.ExitCode(), arguments)
	}
}
