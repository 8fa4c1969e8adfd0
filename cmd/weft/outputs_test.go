package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Looking whether they can be written changes nothing of what is there: neither does it end
// what is read from a pipe, nor wait for who reads it.
func TestOutputsAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), link))
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o600))
	require.NoError(t, checkOutputs([]namedFile{
		{"--json", pipe}, {"--plot", link}, {"--plot", file}, {"--plot", filepath.Join(dir, "new")}, {"--plot", ""}, {"--plot", ""},
	}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "content", string(content))
}
