//go:build linux

package hosts_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// table has what each fault has caused.
type table struct {
	mu   sync.Mutex
	rows []row
}

type row struct{ fault, provider, layer, seen, times string }

// add adds what was seen of calls at a layer; where that is empty, the kinds of their
// errors.
func (t *table) add(s *site, layer, seen string, events []event) {
	s.t.Helper()
	var names []string
	least, most := time.Duration(1<<62), time.Duration(0)
	count := 0
	for _, e := range events {
		after := time.Duration(e.At - s.begin)
		least, most = min(least, after), max(most, after)
		count += e.Count
		for _, kind := range e.Kinds {
			// Whose rank it was depends on whose call.
			kind, _, _ = strings.Cut(kind, " ")
			if !slices.Contains(names, kind) {
				names = append(names, kind)
			}
		}
	}
	if seen == "" {
		slices.Sort(names)
		seen = fmt.Sprintf("%d calls: %s", len(events), strings.Join(names, ", "))
	}
	times := fmt.Sprintf("%.1f s", most.Seconds())
	if most-least > 100*time.Millisecond {
		times = fmt.Sprintf("%.1f to %.1f s", least.Seconds(), most.Seconds())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, row{s.fault.name, s.provider, layer, seen, times})
}

// write writes the table into the file that WEFT_HOSTS_TABLE names, or into the log.
func (t *table) write(test *testing.T) {
	slices.SortStableFunc(t.rows, func(a, b row) int {
		of := func(r row) int { return slices.IndexFunc(faults, func(f fault) bool { return f.name == r.fault }) }
		if of(a) != of(b) {
			return of(a) - of(b)
		}
		return strings.Compare(a.provider, b.provider)
	})
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "FAULT OF ONE HOST\tPROVIDER\tLAYER\tSEEN\tAFTER")
	for _, r := range t.rows {
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\n", r.fault, r.provider, r.layer, r.seen, r.times)
	}
	_ = columns.Flush()
	if file := os.Getenv("WEFT_HOSTS_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			test.Error(err)
		}
		return
	}
	test.Log("\n" + text.String())
}
