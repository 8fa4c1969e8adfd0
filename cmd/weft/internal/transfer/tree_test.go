package transfer

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// node is what a test compares of a file or folder.
type node struct {
	mode     fs.FileMode
	content  string
	modified int64
}

func tree(t *testing.T, dir string) map[string]node {
	t.Helper()
	nodes := make(map[string]node)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if path == dir {
			return nil
		}
		info, err := d.Info()
		require.NoError(t, err)
		n := node{mode: info.Mode(), modified: info.ModTime().UnixNano()}
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			n.content = string(content)
		}
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		nodes[name] = n
		return nil
	})
	require.NoError(t, err)
	return nodes
}

func write(t *testing.T, path string, content []byte, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o600))
	require.NoError(t, os.Chmod(path, mode))
}

func sourcesOf(t *testing.T, paths ...string) []Source {
	t.Helper()
	sources, err := Sources(paths)
	require.NoError(t, err)
	return sources
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
