package report

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// pageOf writes and parses the page of a report.
func pageOf(t *testing.T, r *Report, changes *Changes) (root *html.Node, source string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, r.WriteHTML(file, changes))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	root, err = html.Parse(strings.NewReader(string(text)))
	require.NoError(t, err)
	return root, string(text)
}

// said is the text of a node, in one line.
func said(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

func all(root *html.Node, name string) (found []*html.Node) {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

func TestPage(t *testing.T) {
	r := sample()
	root, _ := pageOf(t, r, nil)
	text := said(root)
	for _, result := range r.Results {
		require.Contains(t, text, result.Name)
	}
	for _, want := range []string{
		"Some <Processor>", "Linux 6.1", "1.17", "go1.26", "0123456789ab", "weft bench --quick", "2026-11-22 17:00 UTC", "1m1s, 5 rounds",
		"A quick run", "3 targets met", "3 targets missed", "2 could not be judged", "1.00 (1.00-1.07)",
	} {
		require.Contains(t, text, want)
	}
	var rows []string
	for _, row := range all(root, "tr") {
		rows = append(rows, said(row))
	}
	for _, want := range []string{
		"P1 shm 8 B ping-pong Open MPI 0.290 us (0.280-0.310) <= 1.00 absent no mpirun",
		"latency shm C absent no compiler",
		"P10 sockets ping-pong absent no provider sockets",
		"P9 shm Allreduce failed weft: rank 1: exit status 1 and more",
	} {
		require.Contains(t, rows, want)
	}
	require.Contains(t, text, `Open MPI absent : exec: "mpicc": not found`)
}

// The page needs nothing that is not in it, and browsers need not guess what it means.
func TestPageStandsAlone(t *testing.T) {
	changes := Compare(sample(), sample())
	root, source := pageOf(t, sample(), &changes)
	require.NotRegexp(t, `(?i)https?:|url\(|@import|<script|<link|<img|<iframe`, source)
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			require.NotContains(t, []string{"src", "href", "xlink:href", "srcset", "action"}, a.Key)
		}
	}
	// Each element that begins ends, in order.
	var open []string
	tokens := html.NewTokenizer(strings.NewReader(source))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		name, _ := tokens.TagName()
		switch kind {
		case html.StartTagToken:
			if a := atom.Lookup(name); a != atom.Meta {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			require.NotEmpty(t, open, string(name))
			require.Equal(t, open[len(open)-1], string(name))
			open = open[:len(open)-1]
		}
	}
	require.Empty(t, open)
}

func TestPageCompares(t *testing.T) {
	changes := Compare(withRounds(1.00, 1.01, 1.02, 1.03, 1.04), withRounds(1.50, 1.51, 1.52, 1.53, 1.54))
	root, _ := pageOf(t, sample(), &changes)
	require.Contains(t, said(root), "P1 weft 1.02 us 1.52 us +49.02% 0.008 (5, 5 rounds) worse")
}

func TestCharts(t *testing.T) {
	charts := sample().charts()
	require.Len(t, charts, 2)
	matching, latency := charts[0], charts[1]
	require.Equal(t, "Matching", matching.Title)
	require.Len(t, matching.Lines, 1)
	dots := matching.Lines[0].Dots
	require.Len(t, dots, 2)
	require.Less(t, dots[0].X, dots[1].X)
	require.Less(t, dots[0].Y, dots[1].Y, "47.5 ns are higher up than 41")
	require.Greater(t, dots[1].Least, dots[1].Most)
	require.Equal(t, "posted, 10 others that are waiting: 41.0 ns (30.0 to 52.0, 2 rounds)", dots[1].Says)
	// The longest is beyond the axis.
	require.Len(t, latency.Lines, 1)
	require.Len(t, latency.Lines[0].Dots, 2)
	for _, c := range charts {
		for _, l := range c.Lines {
			for _, d := range l.Dots {
				for _, y := range []float64{d.Y, d.Least, d.Most} {
					require.True(t, d.X >= left && d.X <= right && y >= top && y <= bottom, "%v %v", d.X, y)
				}
			}
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	for _, points := range [][]point{nil, {{1, []float64{0}}}, {{0, []float64{1}}}} {
		_, something := draw("empty", "bytes", "us", []line{{"weft", points}})
		require.False(t, something)
	}
	one, something := draw("one", "no such axis", "us", []line{{"weft", []point{{1, []float64{3}}}}})
	require.True(t, something)
	require.Len(t, one.XTicks, 1)
}

func TestDecades(t *testing.T) {
	require.Equal(t, []float64{0.2, 0.5, 1, 2}, roundedAll(decades(0.21, 1.9)))
	require.Equal(t, []float64{1, 10, 100, 1000, 10000}, roundedAll(decades(1, 3000)))
	require.Equal(t, []float64{5, 10}, roundedAll(decades(7, 7)))
}

func roundedAll(values []float64) (all []float64) {
	for _, v := range values {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
		all = append(all, rounded)
	}
	return slices.Clip(all)
}
