package survey

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Print writes what came of the survey for people.
func (r *Report) Print(w io.Writer) error {
	if r.Simulated != "" {
		fmt.Fprintf(w, "reckoned for %s; nothing of this was measured; commit %s\n", r.Simulated, r.Environment.Commit)
		return r.printReckoned(w)
	}
	r.Environment.Print(w)
	fmt.Fprintf(w, "%s, %d rounds", r.Provider, r.Rounds)
	if r.Arena {
		fmt.Fprint(w, ", weft's data in arenas")
	}
	if r.OpenMPI != "" {
		fmt.Fprintf(w, ", %s", r.OpenMPI)
	}
	fmt.Fprintln(w)
	for _, p := range r.Network {
		fmt.Fprintf(w, "two ranks, %s: a message %s, to combine %s, to copy %s us\n",
			sizeName(p.Bytes), figure(p.Message.Median()), figure(p.Combine.Median()), figure(p.Copy.Median()))
	}
	fmt.Fprintln(w)
	if err := r.printResults(w); err != nil {
		return err
	}
	if err := r.printAlgorithms(w); err != nil {
		return err
	}
	if r.Interrupted {
		fmt.Fprintln(w, "The survey was interrupted: what is missing was not measured, and what was may have fewer rounds.")
	}
	for _, m := range r.Missing {
		fmt.Fprintf(w, "not measured: %s (%d): %s\n", m.What, m.Count, m.Why)
	}
	return nil
}

// rows prints aligned columns.
func rows(w io.Writer, head string, fill func(row func(cells ...string))) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	row(strings.Split(head, ",")...)
	fill(row)
	return t.Flush()
}

func (r *Report) printResults(w io.Writer) error {
	defer r.printFailures(w)
	return rows(w, "collective,ranks,bytes,algorithm,weft us,Open MPI us,ratio (rounds),bound us,ratio (rounds)", func(row func(...string)) {
		for _, one := range r.Results {
			cells := []string{one.Collective, strconv.Itoa(one.Ranks), sizeName(one.Bytes), one.Algorithm}
			if one.Failure != "" {
				row(append(cells, "FAILED")...)
				continue
			}
			cells = append(cells, figure(one.Weft.Median()))
			cells = append(cells, one.OpenMPI.cells()...)
			row(append(cells, one.Bound.cells()...)...)
		}
	})
}

// printFailures says each once.
func (r *Report) printFailures(w io.Writer) {
	var said []string
	for _, one := range r.Results {
		text := fmt.Sprintf("%s on %d ranks: %s", one.Collective, one.Ranks, one.Failure)
		if one.Failure != "" && !slices.Contains(said, text) {
			said = append(said, text)
			fmt.Fprintln(w, text)
		}
	}
}

func (c *Comparison) cells() []string {
	if c == nil {
		return []string{"-", "-"}
	}
	return []string{figure(c.Series.Median()), fmt.Sprintf("%.2f (%.2f-%.2f)", c.Ratio, slices.Min(c.Ratios), slices.Max(c.Ratios))}
}

// printAlgorithms prints what was measured of each, and how well it was predicted.
func (r *Report) printAlgorithms(w io.Writer) error {
	if !slices.ContainsFunc(r.Results, func(one *Result) bool { return len(one.Algorithms) > 0 }) {
		return nil
	}
	fmt.Fprintln(w)
	head, predictions := "collective,ranks,bytes,algorithm,weft us", r.judge()
	if predictions != nil {
		head += ",predicted us,ratio,"
	}
	err := rows(w, head, func(row func(...string)) {
		for _, one := range r.Results {
			for _, a := range one.Algorithms {
				cells := []string{one.Collective, strconv.Itoa(one.Ranks), sizeName(one.Bytes), a.Name, figure(a.Weft.Median())}
				if a.Predicted > 0 {
					verdict := "far"
					if a.near() {
						verdict = "near"
					}
					if a.Calibrating {
						verdict += ", calibrating"
					}
					if !a.steady() {
						verdict += ", unsteady"
					}
					cells = append(cells, figure(a.Predicted), fmt.Sprintf("%.2f", a.Ratio), verdict)
				} else if predictions != nil {
					cells = append(cells, "-", "-", "")
				}
				row(cells...)
			}
		}
	})
	if p := predictions; p != nil {
		fmt.Fprintf(w, "%d of %d predictions are within %.0f %% of what was measured; without the calls that calibrate the simulator, %d of %d\n",
			p.Near, p.All, within*100, p.NearOthers, p.Others)
		fmt.Fprintf(w, "%d of %d measurements are unsteady, as every other round is not within %.0f %% of the rest; without these, %d of %d predictions are\n",
			p.All-p.Steady, p.All, within*100, p.NearSteady, p.Steady)
	}
	return err
}

// printReckoned marks the best algorithm of each call, and the one that is taken.
func (r *Report) printReckoned(w io.Writer) error {
	return rows(w, "collective,ranks,bytes,algorithm,us,to the best,", func(row func(...string)) {
		for _, one := range r.Results {
			best := one.best()
			for _, a := range one.Algorithms {
				mark := ""
				if a.Name == one.Algorithm {
					mark = "taken"
				}
				row(one.Collective, strconv.Itoa(one.Ranks), sizeName(one.Bytes), a.Name, figure(a.Predicted),
					fmt.Sprintf("%.2f", a.Predicted/best), mark)
			}
		}
	})
}

// best is the least that any algorithm is predicted to take.
func (r *Result) best() float64 {
	best := 0.0
	for _, a := range r.Algorithms {
		if best == 0 || a.Predicted < best {
			best = a.Predicted
		}
	}
	return best
}

// figure has three digits, or all before the point.
func figure(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// sizeName is a number of bytes as ParseSize takes it.
func sizeName(bytes int) string {
	for _, unit := range []struct {
		name  string
		bytes int
	}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}} {
		if bytes >= unit.bytes && bytes%unit.bytes == 0 {
			return strconv.Itoa(bytes/unit.bytes) + unit.name
		}
	}
	return strconv.Itoa(bytes)
}

// ParseSize returns the bytes of a text such as "8", "4K", "1M" or "1G".
func ParseSize(text string) (int, error) {
	unit := 1
	number := text
	for i, name := range []string{"K", "M", "G"} {
		if rest, found := strings.CutSuffix(text, name); found {
			number, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > mostBytes/unit || n*unit < element || n*unit%element != 0 {
		return 0, fmt.Errorf("it must be from %d to 1G bytes, a multiple of %d, such as 8, 4K or 1M", element, element)
	}
	return n * unit, nil
}

const mostBytes = 1 << 30
