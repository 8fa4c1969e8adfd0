package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestFilesArrive(t *testing.T) {
	exampletest.OnProviders(t, func(t *testing.T, provider string) {
		from, to := t.TempDir(), t.TempDir()
		address := exampletest.Serve(t, "-provider", provider, "-listen", "127.0.0.1:0", "-dir", to)
		for _, size := range []int{0, 1, chunk, 3*chunk + 17} {
			content := make([]byte, size)
			_, _ = rand.NewChaCha8([32]byte{}).Read(content)
			name := fmt.Sprintf("of %d bytes", size)
			require.NoError(t, os.WriteFile(filepath.Join(from, name), content, 0o600))
			printed, logged, err := exampletest.Run(t, "-provider", provider, filepath.Join(from, name), address)
			require.NoError(t, err, logged)
			require.Contains(t, printed, fmt.Sprintf("sha256 %x verified", sha256.Sum256(content)))
			arrived, err := os.ReadFile(filepath.Join(to, name))
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, arrived))
		}
	})
}

// What is not as announced is refused with the reason, and leaves nothing.
func TestWrongFilesAreRefused(t *testing.T) {
	to := t.TempDir()
	address := exampletest.Serve(t, "-provider", "tcp", "-listen", "127.0.0.1:0", "-dir", to)
	for _, c := range []struct{ header, data, sum, want string }{
		{`{"Name":"f","Size":4}`, "data", "that of others", "sha256"},
		{`{"Name":"f","Size":3}`, "data", "", "longer than its 3 bytes"},
		{`{"Name":"../f","Size":4}`, "", "", "not the name of a file"},
		{`{"Name":".","Size":4}`, "", "", "not the name of a file"},
		{`{"Name":"","Size":4}`, "", "", "not the name of a file"},
		{`{"Name":"f","Size":-1}`, "", "", "a size of -1"},
		{`f`, "", "", "invalid character"},
	} {
		conn, err := efa.Dial(t.Context(), address, &efa.Config{Providers: []string{"tcp"}, MaxMessage: chunk})
		require.NoError(t, err)
		for _, message := range []string{c.header, c.data, c.sum} {
			if message != "" {
				require.NoError(t, conn.WriteMessage(t.Context(), []byte(message)))
			}
		}
		answer := make([]byte, longestAnswer)
		n, err := conn.ReadMessage(t.Context(), answer)
		require.NoError(t, err)
		require.Contains(t, string(answer[:n]), c.want)
		require.NoError(t, conn.Close())
	}
	left, err := os.ReadDir(to)
	require.NoError(t, err)
	require.Empty(t, left)
}
