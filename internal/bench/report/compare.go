package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Changes are what is different between two runs.
type Changes struct {
	// Notes are what a reader has to know before a figure.
	Notes []string
	Rows  []Change
}

// Change is one value in both runs.
type Change struct {
	Name string
	// What is "weft", a ratio such as "weft to C", or a figure.
	What     string
	Unit     string
	Old, New []float64 // by round
	// Delta is the change of the median if it is significant, and "~" if it is not.
	Delta string
	// P is how likely such a difference is by chance (Mann-Whitney U).
	P           float64
	Significant bool
	Better      bool // if it is significant
	// Unjudged is why there can be no significance, such as too few rounds.
	Unjudged string
	Note     string
}

// Compare says what is different in the later run. A value of which only one run has rounds
// has a note, and no Delta.
func Compare(before, after *Report) Changes {
	c := Changes{Notes: differences(before, after)}
	earlier := map[string]*Result{}
	for i := range before.Results {
		earlier[before.Results[i].Name] = &before.Results[i]
	}
	compared := map[string]bool{}
	for i := range after.Results {
		result := &after.Results[i]
		then := earlier[result.Name]
		compared[result.Name] = true
		if then == nil {
			c.Rows = append(c.Rows, Change{Name: result.Name, Note: "not in the earlier run"})
			continue
		}
		c.Rows = append(c.Rows, changesOf(then, result)...)
	}
	for i := range before.Results {
		if name := before.Results[i].Name; !compared[name] {
			c.Rows = append(c.Rows, Change{Name: name, Note: "not in the later run"})
		}
	}
	tests, open := 0, 0
	for _, row := range c.Rows {
		switch {
		case row.Unjudged != "":
			open++
		case row.Delta != "":
			tests++
		}
	}
	if tests > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("Significant is what chance brings about in less than %.0f %% of cases; of %d values that do not change, about %.0f look so all the same.",
			100*benchmath.DefaultThresholds.CompareAlpha, tests, math.Ceil(float64(tests)*benchmath.DefaultThresholds.CompareAlpha)))
	}
	if open > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d values cannot be judged; their rows say why.", open))
	}
	return c
}

// differences are those of the machines and the runs.
func differences(before, after *Report) (notes []string) {
	a, b := before.Environment, after.Environment
	for _, d := range []struct{ what, then, now string }{
		{"processors", fmt.Sprintf("%d of %s", a.Cores, a.Processor), fmt.Sprintf("%d of %s", b.Cores, b.Processor)},
		{"kernels", a.Kernel, b.Kernel},
		{"versions of libfabric", a.Libfabric, b.Libfabric},
		{"versions of Go", a.Go, b.Go},
	} {
		if d.then != d.now {
			notes = append(notes, fmt.Sprintf("The runs had different %s: %s, and then %s.", d.what, d.then, d.now))
		}
	}
	if len(notes) > 0 {
		notes = append(notes, "So a change need not be one of weft; the ratios to the baselines say more about it than the values.")
	}
	for _, r := range []struct {
		which string
		*Report
	}{{"earlier", before}, {"later", after}} {
		if r.Quick {
			notes = append(notes, "The "+r.which+" run was a quick one.")
		}
		if r.Interrupted {
			notes = append(notes, "The "+r.which+" run was interrupted.")
		}
	}
	return notes
}

func changesOf(then, now *Result) (rows []Change) {
	add := func(what, unit string, before, after []float64, more bool) {
		c := Change{Name: now.Name, What: what, Unit: unit, Old: before, New: after}
		switch {
		case len(before) == 0 && len(after) == 0:
			return
		case len(before) == 0:
			c.Note = "not measured in the earlier run"
		case len(after) == 0:
			c.Note = "not measured in the later run"
		default:
			c.judge(more)
		}
		if c.Note == "" && (then.Bytes != now.Bytes || then.Window != now.Window || then.Messages != now.Messages) {
			c.Note = fmt.Sprintf("%d messages of %d B, window %d, and then %d of %d B, window %d",
				then.Messages, then.Bytes, then.Window, now.Messages, now.Bytes, now.Window)
		}
		rows = append(rows, c)
	}
	add("weft", now.Unit, then.Weft.values(), now.Weft.values(), now.MoreIsBetter)
	for _, c := range now.Comparisons {
		if i := slices.IndexFunc(then.Comparisons, func(o Comparison) bool { return o.Baseline == c.Baseline }); i >= 0 {
			add("weft to "+c.Baseline, "", then.Comparisons[i].Ratios, c.Ratios, now.MoreIsBetter)
		}
	}
	for _, f := range now.Figures {
		if i := slices.IndexFunc(then.Figures, func(o Figure) bool { return o.Name == f.Name }); i >= 0 && !f.Minor {
			add(f.Name, f.Unit, then.Figures[i].Weft, f.Weft, false)
		}
	}
	if len(rows) == 0 {
		rows = []Change{{Name: now.Name, Note: "measured in neither run"}}
	}
	return rows
}

// judge takes no distribution for granted.
func (c *Change) judge(more bool) {
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	}
	test := benchmath.AssumeNothing.Compare(sample(c.Old), sample(c.New))
	before, after := median(c.Old), median(c.New)
	c.P, c.Delta = test.P, test.FormatDelta(before, after)
	c.Significant = test.P < test.Alpha
	c.Better = c.Significant && (after > before) == more
	if len(test.Warnings) > 0 {
		c.Unjudged = test.Warnings[0].Error()
	}
}

// Print writes a table for people.
func (c Changes) Print(w io.Writer) error {
	err := columns(w, "work\twhat\tbefore\tafter\tchange\tp\t", func(t io.Writer) {
		for _, row := range c.Rows {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.Name, dash(row.What),
				dash(row.Value(row.Old)), dash(row.Value(row.New)), dash(row.Delta), dash(row.Probability()), row.Remark())
		}
	})
	fmt.Fprintln(w)
	for _, note := range c.Notes {
		fmt.Fprintln(w, note)
	}
	return err
}

// Value is the median of the rounds, with its unit.
func (c Change) Value(values []float64) string {
	switch {
	case len(values) == 0:
		return ""
	case c.Unit == "":
		return number(median(values))
	}
	return number(median(values)) + " " + c.Unit
}

// Probability is P with the numbers of rounds, empty if there is none.
func (c Change) Probability() string {
	if c.Delta == "" {
		return ""
	}
	return fmt.Sprintf("%.3f (%d, %d rounds)", c.P, len(c.Old), len(c.New))
}

// Remark is whether it has become better, and what else there is to say.
func (c Change) Remark() string {
	var parts []string
	switch {
	case c.Better:
		parts = append(parts, "better")
	case c.Significant:
		parts = append(parts, "worse")
	}
	for _, text := range []string{c.Unjudged, c.Note} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}
