package weft_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Blocks of sh are run as they stand. Those of console are for other machines, or go on
// until somebody ends them, and so may be indented ones: their syntax is checked.
func TestDocShell(t *testing.T) {
	run := 0
	for _, b := range blocks(t) {
		switch b.kind {
		case "sh":
			run++
			t.Run(b.where(), func(t *testing.T) {
				// The tree keeps the programs that it has.
				text := strings.ReplaceAll(b.text, "bin/", t.TempDir()+"/")
				printed, logged, err := runDocs(t, "bash", "-euo", "pipefail", "-c", text)
				require.NoError(t, err, "%s%s", printed, logged)
			})
		case "console", "indented":
			check := exec.CommandContext(t.Context(), "bash", "-n")
			check.Stdin = strings.NewReader(b.text)
			out, err := check.CombinedOutput()
			require.NoError(t, err, "%s: %s", b.where(), out)
		}
	}
	require.Positive(t, run)
}
