package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

func TestServerAndClient(t *testing.T) {
	exampletest.OnProviders(t, func(t *testing.T, provider string) {
		address := exampletest.Serve(t, "-provider", provider, "-listen", "127.0.0.1:0")
		// One that is too long is an error there, and the server goes on.
		printed, logged, err := exampletest.Run(t, "-provider", provider, address, strings.Repeat("x", longest+1))
		require.Error(t, err)
		require.Empty(t, printed)
		require.Contains(t, logged, "65537")
		words := []string{"hello", "", strings.Repeat("x", longest)}
		printed, logged, err = exampletest.Run(t, append([]string{"-provider", provider, address}, words...)...)
		require.NoError(t, err, logged)
		require.Equal(t, strings.Join(words, "\n")+"\n", printed)
	})
}
