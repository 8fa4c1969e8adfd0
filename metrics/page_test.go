package metrics

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// row is a metric as the page lists it.
type row struct {
	group, name, help string
	kind              prometheus.ValueType
	labels            []string
}

func rowsOf[S any](group, constant string, metrics []metric[S]) (rows []row) {
	for _, m := range metrics {
		labels := slices.Clone(m.labels)
		if constant != "" {
			labels = append([]string{constant}, labels...)
		}
		rows = append(rows, row{group, m.name, m.help, m.kind, labels})
	}
	return rows
}

// rows are all metrics.
func rows() []row {
	return slices.Concat(
		rowsOf("A reactor: NewReactorCollector", "reactor", reactorMetrics),
		rowsOf("Connections by peer: NewConnections", "reactor", peerMetrics),
		rowsOf("Collective calls: NewCollectiveCollector", "communicator", collectiveMetrics),
		rowsOf("Memory: NewMemoryCollector", "", memoryMetrics),
		rowsOf("EFA devices: NewHardwareCollector", "", hardwareMetrics),
	)
}

func document() string {
	var b strings.Builder
	group := ""
	for _, r := range rows() {
		if r.group != group {
			group = r.group
			fmt.Fprintf(&b, "\n## %s\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n", group)
		}
		kind := "counter"
		if r.kind == prometheus.GaugeValue {
			kind = "gauge"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, kind, strings.Join(r.labels, ", "), r.help)
	}
	return b.String()
}

var write = flag.Bool("write", false, "write docs/metrics.md instead of comparing it")

func TestPage(t *testing.T) {
	const page, mark = "../docs/metrics.md", "<!-- What follows is made by the test of metrics: go test ./metrics -run=TestPage -write -->\n"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, listed, ok := strings.Cut(string(text), mark)
	require.True(t, ok, "the page has lost its mark")
	if *write {
		require.NoError(t, os.WriteFile(page, []byte(head+mark+document()), 0o644))
		return
	}
	require.Equal(t, document(), listed, "make it anew: go test ./metrics -run=TestPage -write")
}

var (
	// selector is a metric with what is asked of its labels.
	selector = regexp.MustCompile(`\b(weft_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	by       = regexp.MustCompile(`\bby\s*\(([^)]*)\)`)
	legend   = regexp.MustCompile(`\{\{(\w+)\}\}`)
	risen    = regexp.MustCompile(`\b(?:rate|increase)\((weft_[a-z0-9_]+)`)
)

// board is what a dashboard of Grafana has of queries.
type board struct {
	Panels []struct {
		Type, Title string
		Targets     []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Type, Definition string }
	}
}

func dashboard(t *testing.T) (b board) {
	t.Helper()
	text, err := os.ReadFile("../docs/grafana/weft.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &b))
	return b
}

// Every query of the dashboard is about metrics that there are, and their labels.
func TestDashboard(t *testing.T) {
	dashboard := dashboard(t)
	// Prometheus itself gives these to what it scrapes.
	labels := make(map[string][]string)
	for _, r := range rows() {
		labels[r.name] = append(r.labels, "job", "instance")
	}
	check := func(query string, more ...string) {
		found := selector.FindAllStringSubmatch(query, -1)
		require.NotEmpty(t, found, query)
		for _, s := range found {
			require.Contains(t, labels, s[1], query)
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				require.Contains(t, labels[s[1]], m[1], query)
			}
			for _, label := range more {
				require.Contains(t, labels[s[1]], label, query)
			}
		}
		for _, s := range risen.FindAllStringSubmatch(query, -1) {
			require.Regexp(t, `_total$`, s[1], query)
		}
	}
	queries := 0
	for _, p := range dashboard.Panels {
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, target := range p.Targets {
			var named []string
			for _, m := range by.FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(m[1], ",") {
					named = append(named, strings.TrimSpace(label))
				}
			}
			check(target.Expr, named...)
			for _, m := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				require.Contains(t, named, m[1], "%s: the legend is of a label that the query does not keep", p.Title)
			}
			queries++
		}
	}
	require.Greater(t, queries, 20)
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			check(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"))
		}
	}
}
