package fabrictest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestLeaksFailPassingTests(t *testing.T) {
	report := leaks(
		[]fabric.HandleInfo{{Kind: "domain", Provider: "tcp", Stack: "main.open()\n\tmain.go:7\n"}},
		map[string]int64{"slots": 128, "arena": 4096, "queue": 0},
	)
	require.Equal(t, "open domain of provider \"tcp\", created at:\nmain.open()\n\tmain.go:7\n"+
		"4096 bytes of C memory for arena\n128 bytes of C memory for slots\n", report)

	var out strings.Builder
	require.Equal(t, 1, exitCode(0, report, &out))
	require.Contains(t, out.String(), report)
	require.Equal(t, 2, exitCode(2, report, &out), "the failure of the tests themselves is kept")
}

func TestNoLeaksKeepTheExitCode(t *testing.T) {
	var out strings.Builder
	none := leaks(nil, map[string]int64{"slots": 0})
	require.Equal(t, 0, exitCode(0, none, &out))
	require.Equal(t, 1, exitCode(1, none, &out))
	require.Empty(t, out.String())
}
