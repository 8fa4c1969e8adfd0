package report

import (
	"fmt"
	"slices"
	"strconv"
)

// Verdict is what is said of a row.
type Verdict string

// The verdicts.
const (
	Met      Verdict = "met"
	Missed   Verdict = "missed"
	NoTarget Verdict = "" // there is none
	Absent   Verdict = "absent"
	Failed   Verdict = "failed"
)

// Row is one line of the table: weft beside one baseline, a figure, or the reason why there
// is neither.
type Row struct {
	Result *Result
	// What is the name of the figure, if it is one, and Beside that of the baseline.
	What, Beside string
	Unit         string
	Weft         []float64 // by round
	Baseline     []float64
	Ratios       []float64 // if the target is about those
	Limit        float64   // 0: there is no target
	AtLeast      bool
	Verdict      Verdict
	Why          string // it is absent, or has failed
	// Minor rows are left out of the table for people.
	Minor bool
}

// Rows are all that there is to say, in the order in which it was measured.
func (r *Report) Rows() (rows []Row) {
	for i := range r.Results {
		rows = append(rows, r.Results[i].rows()...)
	}
	return rows
}

func (r *Result) rows() (rows []Row) {
	add := func(row Row) {
		row.Result = r
		if row.Unit == "" {
			row.Unit = r.Unit
		}
		rows = append(rows, row)
	}
	switch {
	case r.Failure != "":
		add(Row{Verdict: Failed, Why: r.Failure})
		return rows
	case r.NotHere != "":
		add(Row{Verdict: Absent, Why: r.NotHere})
		return rows
	}
	for _, c := range r.Comparisons {
		row := Row{Beside: c.Baseline, Weft: r.Weft.values(), Limit: c.Limit, AtLeast: c.AtLeast}
		if c.NotHere != "" {
			row.Verdict, row.Why = Absent, c.NotHere
		} else {
			row.Verdict, row.Ratios = verdict(c.Limit, c.Met), c.Ratios
			row.Weft, row.Baseline = c.beside(r.Weft)
		}
		add(row)
	}
	if r.Limit > 0 || len(r.Comparisons)+len(r.Figures) == 0 {
		weft := r.Weft.values()
		add(Row{Weft: weft, Limit: r.Limit, Verdict: verdict(r.Limit, median(weft) <= r.Limit)})
	}
	if r.BaselineNotHere != "" {
		add(Row{Beside: r.Baseline, Verdict: Absent, Why: r.BaselineNotHere})
	}
	for _, f := range r.Figures {
		row := Row{
			What: f.Name, Beside: r.Baseline, Unit: f.Unit, Weft: f.Weft, Baseline: f.Baseline,
			Limit: f.Limit, Verdict: verdict(f.Limit, f.Met), Minor: f.Minor,
		}
		if len(f.Baseline) == 0 {
			row.Beside = ""
		}
		add(row)
	}
	return rows
}

func verdict(limit float64, met bool) Verdict {
	switch {
	case limit == 0:
		return NoTarget
	case met:
		return Met
	}
	return Missed
}

// Name is that of the benchmark, and of the figure.
func (r Row) Name() string {
	if r.What == "" {
		return r.Result.Name
	}
	return r.Result.Name + ": " + r.What
}

// Target is in words, empty if there is none.
func (r Row) Target() string {
	sign := "<="
	if r.AtLeast {
		sign = ">="
	}
	switch {
	case r.Limit == 0:
		return ""
	case r.Ratios == nil && r.Verdict != Absent:
		return fmt.Sprintf("%s %s %s", sign, number(r.Limit), r.Unit)
	}
	return fmt.Sprintf("%s %.2f", sign, r.Limit)
}

// Ratio is the median, with the least and the most of the rounds.
func (r Row) Ratio() string {
	if len(r.Ratios) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", median(r.Ratios), slices.Min(r.Ratios), slices.Max(r.Ratios))
}

// Value is the median of a program's rounds with its unit, and without a ratio to show it the
// spread.
func (r Row) Value(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	text := number(median(values)) + " " + r.Unit
	if len(r.Ratios) == 0 && len(values) > 1 {
		text += fmt.Sprintf(" (%s-%s)", number(slices.Min(values)), number(slices.Max(values)))
	}
	return text
}

// Tally counts the verdicts on targets: how many are met and missed, and could not be judged.
func Tally(rows []Row) (met, missed, open int) {
	for _, r := range rows {
		switch {
		case r.Verdict == Met:
			met++
		case r.Verdict == Missed:
			missed++
		case r.Limit > 0 || r.Verdict == Failed:
			open++
		}
	}
	return met, missed, open
}

// number has three digits, or all before the point.
func number(v float64) string {
	digits := 0
	for _, least := range []float64{100, 10, 1} {
		if v < least && v > -least {
			digits++
		}
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}
