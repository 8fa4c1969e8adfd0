package main

import (
	"bytes"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, main) }

// A server and three workers, each a process, find the parameters.
func TestWorkersLearn(t *testing.T) {
	const size = 4
	exampletest.OnProviders(t, func(t *testing.T, provider string) {
		store := "file://" + t.TempDir()
		var outputs [size]bytes.Buffer
		var ends [size]func() error
		for rank := range size {
			p := exampletest.Command(t, "-provider", provider)
			p.Env = append(p.Env, bootstrap.Member{Rank: rank, Size: size, LocalRank: rank, LocalSize: size}.Environment(store, nil)...)
			p.Stdout, p.Stderr = &outputs[rank], &outputs[rank]
			require.NoError(t, p.Start())
			ends[rank] = p.Wait
		}
		for rank := range size {
			require.NoError(t, ends[rank](), "rank %d: %s", rank, &outputs[rank])
		}
		found := regexp.MustCompile(`(?m)^3 workers over ` + provider + `\S*, furthest from the truth: (\S+)$`).FindStringSubmatch(outputs[0].String())
		require.NotNil(t, found, "%s", &outputs[0])
		furthest, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		require.Less(t, furthest, 1e-3)
	})
}

// A job of one has nobody to learn.
func TestServerAlone(t *testing.T) {
	p := exampletest.Command(t)
	p.Env = append(p.Env, bootstrap.Member{Size: 1, LocalSize: 1}.Environment("file://"+t.TempDir(), nil)...)
	out, err := p.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "two ranks at least")
}
