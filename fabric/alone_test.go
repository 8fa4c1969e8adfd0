package fabric_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/sharedmemory"
	"github.com/weft-go/weft/internal/testprocess"
)

// alone says to a process of this program that it is there for one test.
const alone = "WEFT_TEST_ALONE"

// inProcess runs a test in a process of its own, where it may crash.
func inProcess(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(alone) != "" {
		test(t)
		return
	}
	child := testprocess.Command(t, os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.count=1", "-test.timeout=2m")
	child.Env = append(os.Environ(), alone+"=1")
	said, err := child.CombinedOutput()
	sharedmemory.Remove(child.Process.Pid)
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "--- PASS: "+t.Name())
	require.NotContains(t, string(said), "--- SKIP")
}
