package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func withRounds(typical ...float64) *Report {
	weft := Series{Typical: typical, Mean: typical}
	c := Comparison{Baseline: "C", Series: Series{Mean: make([]float64, len(typical)), Typical: make([]float64, len(typical))}}
	for i := range typical {
		c.Mean[i], c.Typical[i] = 1, 1
	}
	c.Conclude(weft)
	return &Report{Results: []Result{{Name: "P1", Unit: "us", Weft: weft, Comparisons: []Comparison{c}}}}
}

func TestCompare(t *testing.T) {
	old := withRounds(1.00, 1.01, 1.02, 1.03, 1.04)
	for _, c := range []struct {
		name        string
		after       *Report
		more        bool
		delta       string
		significant bool
		better      bool
	}{
		{"slower", withRounds(1.50, 1.51, 1.52, 1.53, 1.54), false, "+49.02%", true, false},
		{"faster", withRounds(0.51, 0.50, 0.52, 0.53, 0.49), false, "-50.00%", true, true},
		{"more of a rate", withRounds(1.50, 1.51, 1.52, 1.53, 1.54), true, "+49.02%", true, true},
		{"among each other", withRounds(1.005, 1.015, 1.02, 0.99, 1.06), false, "~", false, false},
	} {
		c.after.Results[0].MoreIsBetter = c.more
		rows := Compare(old, c.after).Rows
		require.Len(t, rows, 2, c.name)
		for i, what := range []string{"weft", "weft to C"} {
			require.Equal(t, what, rows[i].What, c.name)
			require.Equal(t, c.delta, rows[i].Delta, c.name)
			require.Equal(t, c.significant, rows[i].Significant, c.name)
			require.Equal(t, c.better, rows[i].Better, c.name)
			require.Empty(t, rows[i].Unjudged, c.name)
		}
	}
	// The test of Mann and Whitney: of all 252 orders of ten rounds, two are as far apart.
	far := Compare(old, withRounds(2, 3, 4, 5, 6)).Rows[0]
	require.InDelta(t, 2.0/252, far.P, 1e-9)
	require.Equal(t, "0.008 (5, 5 rounds)", far.Probability())
}

func TestTooFewRounds(t *testing.T) {
	c := Compare(withRounds(1, 1.1, 1.2), withRounds(9, 9.1, 9.2))
	require.False(t, c.Rows[0].Significant)
	require.Equal(t, "~", c.Rows[0].Delta)
	require.Contains(t, c.Rows[0].Remark(), "need >= 4 samples")
	var text bytes.Buffer
	require.NoError(t, c.Print(&text))
	require.Contains(t, text.String(), "2 values cannot be judged; their rows say why.")
}

func TestCompareNotes(t *testing.T) {
	old, after := sample(), sample()
	require.NotContains(t, strings.Join(Compare(old, after).Notes, "\n"), "different")
	after.Environment.Kernel, after.Environment.Cores = "6.18", 4
	after.Quick = false
	after.Results[0].Name, old.Results[0].Name = "P1 new", "P1 old"
	after.Results[1].Messages = 7
	after.Results[5].Weft, after.Results[5].Comparisons = Series{}, nil
	c := Compare(old, after)
	require.Contains(t, c.Notes, "The runs had different kernels: 6.1, and then 6.18.")
	require.Contains(t, c.Notes, "The runs had different processors: 2 of Some <Processor>, and then 4 of Some <Processor>.")
	require.Contains(t, c.Notes, "The earlier run was a quick one.")
	require.NotContains(t, c.Notes, "The later run was a quick one.")
	remarks := map[string]string{}
	for _, row := range c.Rows {
		remarks[row.Name] = row.Remark()
	}
	require.Equal(t, "not in the earlier run", remarks["P1 new"])
	require.Equal(t, "not in the later run", remarks["P1 old"])
	require.Contains(t, remarks["P7 1 posted"], "0 messages of 0 B, window 0, and then 7 of 0 B, window 0")
	require.Equal(t, "not measured in the later run", remarks["P4 tcp writes"])
	require.Equal(t, "measured in neither run", remarks["P10 sockets ping-pong"])
	var text bytes.Buffer
	require.NoError(t, c.Print(&text))
	require.Contains(t, text.String(), "P11 tcp idle")
}
