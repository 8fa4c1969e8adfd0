// The race detector makes other programs of the sides, and CI has little time: what
// they use of weft is tested with it where it is.

//go:build !race

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/bench"
)

func TestMain(m *testing.M) {
	playPart()
	os.Exit(m.Run())
}

func TestFlagsAreChecked(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds", "4"},
		{"-rounds", "many"},
		{"-run", "("},
		{"-run", "no such benchmark"},
		{"superfluous"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, runBenchmarks(context.Background(), args, &stdout, &stderr), args)
		require.Empty(t, stdout.String())
		require.NotEmpty(t, stderr.String())
	}
}

func TestTargets(t *testing.T) {
	weft := series{Mean: []float64{12, 24, 30}, Typical: []float64{11, 22, 33}}
	for _, c := range []struct {
		comparison comparison
		ratio      float64
		met        bool
	}{
		{comparison{series: series{Mean: []float64{1, 1, 1}, Typical: []float64{10, 20, 15}}, Limit: 1.1}, 1.1, true},
		{comparison{series: series{Mean: []float64{1, 1, 1}, Typical: []float64{9, 10, 33}}, Limit: 1.1}, 11.0 / 9, false},
		// Without parts the means are compared.
		{comparison{series: series{Mean: []float64{12, 12, 30}}, Limit: 1.1}, 1, true},
		{comparison{series: series{Mean: []float64{24, 24, 30}}, Limit: 1, AtLeast: true}, 1, true},
		{comparison{series: series{Mean: []float64{24, 48, 30}}, Limit: 1, AtLeast: true}, 0.5, false},
	} {
		c.comparison.conclude(weft)
		require.InDelta(t, c.ratio, c.comparison.Ratio, 1e-9)
		require.Equal(t, c.met, c.comparison.Met)
	}
}

func TestReport(t *testing.T) {
	r := result{
		Name: "P1 shm 8 B ping-pong", Unit: "us", Bytes: 8, Window: 1, Messages: 100,
		Comparisons: []comparison{
			{Baseline: "C", Value: 0.27, Weft: 0.29, Ratio: 1.07, Limit: 1.1, Met: true, Ratios: []float64{1, 1.07, 1.2}},
			{Baseline: "fi_pingpong", NotHere: "no such file"},
		},
	}
	var text bytes.Buffer
	r.print(&text)
	require.Equal(t, `P1 shm 8 B ping-pong: C 0.27 us, weft 0.29 us, ratio 1.070 (target <= 1.10) met  [8 B, window 1, 100 messages, 3 rounds: 1.000 to 1.200]
P1 shm 8 B ping-pong: fi_pingpong was not run: no such file
`, text.String())

	file := filepath.Join(t.TempDir(), "report.json")
	want := report{Environment: bench.Describe(context.Background()), Rounds: 3, Results: []result{r}}
	require.NotEqual(t, bench.Unknown, want.Environment.Kernel)
	require.NotEqual(t, bench.Unknown, want.Environment.Processor)
	require.NoError(t, want.write(file))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var got report
	require.NoError(t, json.Unmarshal(content, &got))
	require.Equal(t, want, got)
}

func TestFailureIsReported(t *testing.T) {
	failing := func(context.Context, *tools, order) (bench.Sample, error) {
		return bench.Sample{}, context.DeadlineExceeded
	}
	b := benchmark{id: "P0", provider: "none", work: "nothing", weft: failing}
	r := b.run(context.Background(), nil, bench.LeastRounds)
	require.True(t, r.failed())
	var text bytes.Buffer
	r.print(&text)
	require.Equal(t, "P0 none nothing: FAILED: weft: context deadline exceeded\n", text.String())
}

func TestStopwatchCoversTheRun(t *testing.T) {
	for _, c := range []struct{ count, least, parts, step int }{
		{1, 1, 1, 1}, {10, 100, 1, 10}, {1000, 1, 512, 1}, {5000, 1000, 5, 1000},
	} {
		w := newStopwatch(order{warmup: 3, count: c.count}, c.least)
		var marked []int
		for i := range c.count + 4 {
			if i == w.next {
				w.mark()
				marked = append(marked, i)
			}
		}
		require.Len(t, marked, c.parts+1)
		require.Equal(t, 3, marked[0])
		require.Equal(t, 3+c.parts*c.step, marked[c.parts])
		took, err := w.stop(2)
		require.NoError(t, err)
		require.Equal(t, 2*c.count, took.operations)
		require.Equal(t, 2*c.step, took.partOperations)
		require.GreaterOrEqual(t, took.elapsed, took.part)
	}
	_, err := newStopwatch(order{warmup: 1, count: 1}, 1).stop(1)
	require.Error(t, err)
}
