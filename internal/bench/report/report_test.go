package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/bench"
)

// sample has a result of each kind.
func sample() *Report {
	concluded := func(weft Series, c Comparison) Comparison {
		c.Conclude(weft)
		return c
	}
	weft := Series{Mean: []float64{0.31, 0.32, 0.33, 0.34, 0.35}, Typical: []float64{0.28, 0.29, 0.29, 0.3, 0.31}}
	met, missed := Figure{Name: "processor", Unit: "% of a core", Limit: 1, Weft: []float64{0.7, 0.8}, Baseline: []float64{0, 0.1}},
		Figure{Name: "resident", Unit: "KiB", Limit: 4, Weft: []float64{5, 5}, Baseline: []float64{1, 1}}
	met.Conclude()
	missed.Conclude()
	return &Report{
		Environment: bench.Environment{Processor: "Some <Processor>", Cores: 2, Kernel: "6.1", Libfabric: "1.17", Go: "go1.26", Commit: "0123456789ab", Load: "0.10"},
		Command:     "weft bench --quick", Start: time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC), Seconds: 61, Rounds: 5, Quick: true,
		Tools: []Tool{{Name: "C", Version: "cc 12"}, {Name: "Open MPI", NotHere: `exec: "mpicc": not found`}},
		Results: []Result{
			{
				ID: "P1", Name: "P1 shm 8 B ping-pong", Provider: "shm", Unit: "us", Bytes: 8, Window: 1, Messages: 100, Weft: weft,
				Comparisons: []Comparison{
					concluded(weft, Comparison{Baseline: "C", Limit: 1.1, Series: Series{Mean: []float64{1, 1, 1, 1, 1}, Typical: []float64{0.28, 0.29, 0.28, 0.28, 0.31}}}),
					concluded(weft, Comparison{Baseline: "fi_pingpong", Limit: 1.1, Series: Series{Mean: []float64{0.1, 0.2, 0.2, 0.2, 0.3}}}),
					{Baseline: "Open MPI", Limit: 1, NotHere: "no mpirun"},
				},
			},
			{ID: "P7", Name: "P7 1 posted", Unit: "ns", Weft: Series{Typical: []float64{47, 48}}, Limit: 40, Curve: &Curve{"Matching", "posted", "depth", 1, true}},
			{ID: "P7", Name: "P7 10 posted", Unit: "ns", Weft: Series{Typical: []float64{30, 52}}, Curve: &Curve{"Matching", "posted", "depth", 10, true}},
			{ID: "P11", Name: "P11 tcp idle", Provider: "tcp", Baseline: "Go net TCP", Figures: []Figure{met, missed}},
			{
				ID: "latency", Name: "latency shm", Provider: "shm", Unit: "us", Baseline: "C", BaselineNotHere: "no compiler",
				Figures: []Figure{
					{Name: "50 %", Unit: "us", Percentile: 50, Weft: []float64{1, 2}, Met: true},
					{Name: "99 %", Unit: "us", Percentile: 99, Weft: []float64{3, 4}, Met: true, Minor: true},
					{Name: "the longest", Unit: "us", Percentile: 100, Weft: []float64{30, 40}, Met: true},
				},
				Curve: &Curve{"Latency, shm", "weft", "percentile", 0, false},
			},
			{ID: "P4", Name: "P4 tcp writes", Unit: "GB/s", MoreIsBetter: true, Weft: weft, Comparisons: []Comparison{
				concluded(weft, Comparison{Baseline: "C", AtLeast: true, Limit: 0.9, Series: weft}),
			}},
			{ID: "P10", Name: "P10 sockets ping-pong", NotHere: "no provider sockets"},
			{ID: "P9", Name: "P9 shm Allreduce", Failure: "weft: rank 1: exit status 1\nand more"},
		},
	}
}

func TestTargets(t *testing.T) {
	weft := Series{Mean: []float64{12, 24, 30}, Typical: []float64{11, 22, 33}}
	for _, c := range []struct {
		comparison Comparison
		ratio      float64
		met        bool
	}{
		{Comparison{Series: Series{Mean: []float64{1, 1, 1}, Typical: []float64{10, 20, 15}}, Limit: 1.1}, 1.1, true},
		{Comparison{Series: Series{Mean: []float64{1, 1, 1}, Typical: []float64{9, 10, 33}}, Limit: 1.1}, 11.0 / 9, false},
		// Without parts the means are compared.
		{Comparison{Series: Series{Mean: []float64{12, 12, 30}}, Limit: 1.1}, 1, true},
		{Comparison{Series: Series{Mean: []float64{24, 24, 30}}, Limit: 1, AtLeast: true}, 1, true},
		{Comparison{Series: Series{Mean: []float64{24, 48, 30}}, Limit: 1, AtLeast: true}, 0.5, false},
	} {
		c.comparison.Conclude(weft)
		require.InDelta(t, c.ratio, c.comparison.Ratio, 1e-9)
		require.Equal(t, c.met, c.comparison.Met)
	}
}

func TestJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	want := sample()
	require.NoError(t, want.Write(file))
	got, err := Read(file)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestReadRefuses(t *testing.T) {
	folder := t.TempDir()
	for text, why := range map[string]string{
		"":                                     "is no report of weft bench",
		`[1, 2]`:                               "is no report of weft bench",
		`{"provider": "shm", "results": []}`:   `is no report of weft bench: it has no number in "weft_bench"`,
		`{"weft_bench": 2, "results": [{}]}`:   "has the format 2, this weft knows 1",
		`{"weft_bench": 1, "results": []}`:     "has no results",
		`{"weft_bench": 1, "results": [3, 4]}`: "is no report of weft bench",
	} {
		file := filepath.Join(folder, "a.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := Read(file)
		require.ErrorContains(t, err, why, text)
	}
	_, err := Read(filepath.Join(folder, "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTable(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, sample().Print(&text))
	lines := strings.Split(text.String(), "\n")
	for _, want := range [][]string{
		{"Open MPI is absent: exec: \"mpicc\": not found"},
		{"P1 shm 8 B ping-pong", "C", "0.280 us", "0.290 us", "1.00 (1.00-1.07)", "<= 1.10", "met"},
		// Its means beside weft's.
		{"P1 shm 8 B ping-pong", "fi_pingpong", "0.200 us", "0.330 us", "1.65 (1.17-3.10)", "<= 1.10", "missed"},
		{"P1 shm 8 B ping-pong", "Open MPI", "0.290 us", "ABSENT: no mpirun"},
		{"P7 1 posted", "47.5 ns (47.0-48.0)", "<= 40.0 ns", "missed"},
		{"P7 10 posted", "41.0 ns (30.0-52.0)"},
		{"P11 tcp idle: processor", "Go net TCP", "0.750 % of a core (0.700-0.800)", "<= 1.00 % of a core", "met"},
		{"P11 tcp idle: resident", "<= 4.00 KiB", "missed"},
		{"latency shm", "C", "ABSENT: no compiler"},
		{"latency shm: 50 %", "1.50 us"},
		{"P4 tcp writes", ">= 0.90", "met"},
		{"P10 sockets ping-pong", "ABSENT: no provider sockets"},
		{"P9 shm Allreduce", "FAILED: weft: rank 1: exit status 1 and more"},
		{"A quick run"},
		{"1 of 8 benchmarks failed."},
		{"3 targets met, 3 missed, 2 could not be judged."},
	} {
		found := false
		for _, line := range lines {
			rest, all := line, true
			for _, part := range want {
				_, after, has := strings.Cut(rest, part)
				rest, all = after, all && has
			}
			found = found || all
		}
		require.True(t, found, "%q in\n%s", want, text.String())
	}
	require.NotContains(t, text.String(), "99 %")
}

func TestCaveats(t *testing.T) {
	r := &Report{Environment: bench.Environment{Load: "0.3"}}
	require.Empty(t, r.Caveats())
	r.Environment.Load, r.Interrupted, r.Unprofiled = "3.1", true, []string{"P7 1 posted", "P7 10 posted"}
	require.Len(t, r.Caveats(), 3)
	require.Contains(t, r.Caveats(), "No profiles are written of what is work of one process: P7 1 posted, P7 10 posted.")
}

func TestBrief(t *testing.T) {
	r := sample()
	require.Equal(t, "P1 shm 8 B ping-pong: 0.290 us to C 1.00 met, 0.330 us to fi_pingpong 1.65 missed, Open MPI absent", r.Results[0].Brief())
	require.Equal(t, "P7 1 posted: 47.5 ns (47.0-48.0) missed", r.Results[1].Brief())
	require.Equal(t, "P11 tcp idle: 2 figures", r.Results[3].Brief())
	require.Equal(t, "P10 sockets ping-pong: absent: no provider sockets", r.Results[6].Brief())
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0.000", 0.1234: "0.123", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12345.6: "12346"} {
		require.Equal(t, want, number(v))
	}
}
