package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestServerAndClient(t *testing.T) {
	dir := t.TempDir()
	content := strings.Repeat("a line of it\n", 100_000)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file.txt"), []byte(content), 0o600))
	exampletest.OnProviders(t, func(t *testing.T, provider string) {
		address := exampletest.Serve(t, "-provider", provider, "-listen", "127.0.0.1:0", "-dir", dir)
		printed, logged, err := exampletest.Run(t, "-provider", provider, "http://"+address+"/file.txt")
		require.NoError(t, err, logged)
		require.True(t, content == printed, "%d bytes", len(printed))
		_, logged, err = exampletest.Run(t, "-provider", provider, "http://"+address+"/none")
		require.Error(t, err)
		require.Contains(t, logged, "404")
	})
}
