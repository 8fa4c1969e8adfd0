package weft_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program in the README is compiled and run as it stands.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	programs := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindSubmatch(readme)
	require.NotNil(t, programs, "README.md has no program")

	// An overlay puts it into the module without touching the tree.
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, programs[1], 0o600))
	here, err := os.Getwd()
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(here, "readme", "main.go"): source},
	})
	require.NoError(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayFile, overlay, 0o600))

	run := exec.CommandContext(t.Context(), "go", "run", "-overlay", overlayFile, "./readme")
	run.Stderr = os.Stderr
	out, err := run.Output()
	require.NoError(t, err)
	require.Regexp(t, `^hello over \w+ <nil>\n$`, string(out))
}
