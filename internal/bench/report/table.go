package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	r.Environment.Print(w)
	for _, t := range r.Tools {
		if t.NotHere != "" {
			fmt.Fprintf(w, "%s is absent: %s\n", t.Name, t.NotHere)
		} else {
			fmt.Fprintf(w, "%s: %s\n", t.Name, t.Version)
		}
	}
	fmt.Fprintln(w)
	all := r.Rows()
	err := columns(w, "work\tbeside\tbaseline\tweft\tratio (rounds)\ttarget\t", func(t io.Writer) {
		for _, row := range all {
			if row.Minor {
				continue
			}
			said := string(row.Verdict)
			if row.Why != "" {
				said = strings.TrimSpace(strings.ToUpper(said) + ": " + oneLine(row.Why))
			}
			fmt.Fprintln(t, strings.Join([]string{
				row.Name(), dash(row.Beside), dash(row.Value(row.Baseline)), dash(row.Value(row.Weft)), dash(row.Ratio()), dash(row.Target()), said,
			}, "\t"))
		}
	})
	fmt.Fprintln(w)
	for _, line := range r.Caveats() {
		fmt.Fprintln(w, line)
	}
	met, missed, open := Tally(all)
	fmt.Fprintf(w, "%d targets met, %d missed, %d could not be judged.\n", met, missed, open)
	return err
}

// idleLoad is what a machine on which nothing runs may have.
const idleLoad = 0.5

// Caveats are what a reader has to know before a figure.
func (r *Report) Caveats() (lines []string) {
	if r.Quick {
		lines = append(lines, "A quick run: fewer cases, most with fewer messages, good for a look and not for a claim.")
	}
	if r.Interrupted {
		lines = append(lines, "The run was interrupted: what is missing was not measured, and the last benchmark may have fewer rounds.")
	}
	if len(r.Unprofiled) > 0 {
		lines = append(lines, "No profiles are written of what is work of one process: "+strings.Join(r.Unprofiled, ", ")+".")
	}
	if load, err := strconv.ParseFloat(r.Environment.Load, 64); err == nil && load > idleLoad {
		lines = append(lines, fmt.Sprintf("Other programs had the machine when it began (load %s, %d cores): the values are not those of a quiet one.",
			r.Environment.Load, r.Environment.Cores))
	}
	if n := r.Failures(); n > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d benchmarks failed.", n, len(r.Results)))
	}
	return lines
}

// columns prints aligned columns under their heads.
func columns(w io.Writer, heads string, fill func(w io.Writer)) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, heads)
	fill(t)
	return t.Flush()
}

// dash stands for nothing, so that a column can be told from the next one.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// oneLine is what a program said, without what would break a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Brief is one line about a result, for those who wait.
func (r *Result) Brief() string {
	rows := r.rows()
	parts := []string{}
	for _, row := range rows {
		switch {
		case row.Minor:
		case row.Why != "" && row.Beside != "":
			parts = append(parts, row.Beside+" "+string(row.Verdict))
		case row.Why != "":
			parts = append(parts, string(row.Verdict)+": "+oneLine(row.Why))
		case len(row.Ratios) > 0:
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s to %s %.2f %s", number(median(row.Weft))+" "+row.Unit, row.Beside, median(row.Ratios), row.Verdict)))
		case row.What == "":
			parts = append(parts, strings.TrimSpace(row.Value(row.Weft)+" "+string(row.Verdict)))
		}
	}
	if len(parts) == 0 {
		parts = []string{fmt.Sprintf("%d figures", len(rows))}
	}
	return r.Name + ": " + strings.Join(parts, ", ")
}
