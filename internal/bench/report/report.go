// Package report has what came of a run of weft's benchmarks: as JSON, as a table, as a page
// of HTML, and beside another run.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weft-go/weft/internal/bench"
)

// format is the number of the form of the JSON.
const format = 1

// Report is a run.
type Report struct {
	// Format is that of the JSON; Write sets it.
	Format      int               `json:"weft_bench"`
	Environment bench.Environment `json:"environment"`
	// Command is the command line.
	Command string    `json:"command"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"` // that it took
	Rounds  int       `json:"rounds"`
	// Quick is a run of fewer and smaller cases.
	Quick bool `json:"quick,omitempty"`
	// Interrupted is a run that was ended before all was measured.
	Interrupted bool `json:"interrupted,omitempty"`
	// Unprofiled are the benchmarks that were to have profiles, and are work of one process.
	Unprofiled []string `json:"unprofiled,omitempty"`
	Tools      []Tool   `json:"tools"`
	Results    []Result `json:"results"`
}

// Tool is a program that baselines need.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	NotHere string `json:"not_here,omitempty"` // why it is absent
}

// Result is what became of one benchmark.
type Result struct {
	ID       string `json:"id"` // of the target, such as P1
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Work     string `json:"work"`
	Bytes    int    `json:"bytes"`
	Window   int    `json:"window"`
	Messages int    `json:"messages"`
	Unit     string `json:"unit"`
	// MoreIsBetter tells a rate from a time.
	MoreIsBetter bool   `json:"more_is_better,omitempty"`
	Weft         Series `json:"weft"`
	// Limit is what weft's value is to be at most, whatever it is compared with; 0 is none.
	Limit       float64      `json:"limit,omitempty"`
	Comparisons []Comparison `json:"comparisons,omitempty"`
	// Baseline is what the figures stand beside, and BaselineNotHere why it could not be run.
	Baseline        string   `json:"baseline,omitempty"`
	BaselineNotHere string   `json:"baseline_not_here,omitempty"`
	Figures         []Figure `json:"figures,omitempty"`
	Curve           *Curve   `json:"curve,omitempty"`
	// NotHere is why nothing of it could be run on this machine.
	NotHere string `json:"not_here,omitempty"`
	Failure string `json:"failure,omitempty"`
}

// Curve says where in a chart a result belongs.
type Curve struct {
	Chart string `json:"chart"`
	// Line is that of weft; baselines go by their own names.
	Line string  `json:"line"`
	Axis string  `json:"axis"` // what X counts
	X    float64 `json:"x"`
	// Alone leaves the baselines out of the chart.
	Alone bool `json:"alone,omitempty"`
}

// Comparison is weft beside one baseline.
type Comparison struct {
	Baseline string `json:"baseline"`
	Series
	Ratios  []float64 `json:"ratios,omitempty"` // weft to baseline, by round
	Ratio   float64   `json:"ratio"`            // the median of them
	Value   float64   `json:"value"`            // the baseline's median
	Weft    float64   `json:"weft_value"`       // weft's median, of the same kind
	Limit   float64   `json:"limit"`            // 0: there is no target
	AtLeast bool      `json:"at_least"`         // the ratio is to be at least the limit
	Met     bool      `json:"met"`
	NotHere string    `json:"not_here,omitempty"` // why it could not be run
}

// Series are the values of one program by round, in the result's unit.
type Series struct {
	Mean []float64 `json:"mean,omitempty"`
	// Typical is empty where the program does not tell it.
	Typical []float64 `json:"typical,omitempty"`
}

// Figure is something that has a limit of its own, and no ratio: the baseline is there to see
// what it takes otherwise.
type Figure struct {
	Name     string    `json:"name"`
	Unit     string    `json:"unit"`
	Limit    float64   `json:"limit"` // at most; 0 for none
	Weft     []float64 `json:"weft"`  // by round
	Baseline []float64 `json:"baseline,omitempty"`
	Met      bool      `json:"met"`
	// Percentile of a distribution, which the table leaves out if it is Minor.
	Percentile float64 `json:"percentile,omitempty"`
	Minor      bool    `json:"minor,omitempty"`
}

// Add adds a round's sample, which counts in seconds or operations a second.
func (s *Series) Add(value bench.Sample, scale float64) {
	s.Mean = append(s.Mean, value.Mean*scale)
	if value.Typical != 0 {
		s.Typical = append(s.Typical, value.Typical*scale)
	}
}

// values are the typical ones, or the means where those are not told.
func (s Series) values() []float64 {
	if len(s.Typical) > 0 {
		return s.Typical
	}
	return s.Mean
}

// beside are weft's values and the baseline's, of the same kind: the typical ones where both
// have them, and else the means.
func (c *Comparison) beside(weft Series) (mine, theirs []float64) {
	if len(weft.Typical) == 0 || len(c.Typical) == 0 {
		return weft.Mean, c.Mean
	}
	return weft.Typical, c.Typical
}

// Conclude takes the ratio of each round, and the median of those: a round's
// two runs saw the machine in about the same state.
func (c *Comparison) Conclude(weft Series) {
	if c.NotHere != "" {
		return
	}
	mine, theirs := c.beside(weft)
	c.Ratios = bench.Ratios(mine, theirs)
	c.Value, c.Weft, c.Ratio = median(theirs), median(mine), median(c.Ratios)
	switch {
	case c.Limit == 0:
		c.Met = true
	case c.AtLeast:
		c.Met = c.Ratio >= c.Limit
	default:
		c.Met = c.Ratio <= c.Limit
	}
}

// Conclude says whether the figure is within its limit.
func (f *Figure) Conclude() { f.Met = f.Limit == 0 || median(f.Weft) <= f.Limit }

// median is 0 of nothing, which a file may hold.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return bench.Median(values)
}

// Failures counts the benchmarks that could have been run and were not.
func (r *Report) Failures() (n int) {
	for i := range r.Results {
		if r.Results[i].Failure != "" {
			n++
		}
	}
	return n
}

// Write writes the report into a file, as JSON.
func (r *Report) Write(file string) error {
	r.Format = format
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Read reads what Write has written.
func Read(file string) (*Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is no report of weft bench: %w", file, err)
	}
	switch {
	case r.Format == 0:
		return nil, fmt.Errorf("%s is no report of weft bench: it has no number in \"weft_bench\"", file)
	case r.Format != format:
		return nil, fmt.Errorf("%s has the format %d, this weft knows %d", file, r.Format, format)
	case len(r.Results) == 0:
		return nil, errors.New(file + " has no results")
	}
	return &r, nil
}
