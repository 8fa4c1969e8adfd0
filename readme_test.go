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

// The programs in the README are compiled and run as they stand.
func TestReadmePrograms(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	programs := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindAllSubmatch(readme, -1)
	output := []string{`^hello over \w+ <nil>\n$`, `^hello from /weft\n$`}
	require.Len(t, programs, len(output))
	for i, program := range programs {
		require.Regexp(t, output[i], runProgram(t, program[1]))
	}
}

// runProgram returns what a program prints.
func runProgram(t *testing.T, program []byte) string {
	t.Helper()
	// An overlay puts it into the module without touching the tree.
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, program, 0o600))
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
	return string(out)
}
