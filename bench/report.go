package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/weft-go/weft/internal/bench"
)

// report is what -json writes.
type report struct {
	Environment bench.Environment `json:"environment"`
	Rounds      int               `json:"rounds"`
	Results     []result          `json:"results"`
}

// result is what became of one benchmark.
type result struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Provider    string       `json:"provider"`
	Work        string       `json:"work"`
	Bytes       int          `json:"bytes"`
	Window      int          `json:"window"`
	Messages    int          `json:"messages"`
	Unit        string       `json:"unit"`
	Weft        series       `json:"weft"`
	Comparisons []comparison `json:"comparisons"`
	Label       string       `json:"baseline,omitempty"` // of the figures
	Figures     []figure     `json:"figures,omitempty"`
	Failure     string       `json:"failure,omitempty"`
}

// comparison is weft against one baseline.
type comparison struct {
	Baseline string `json:"baseline"`
	series
	Ratios  []float64 `json:"ratios"`     // weft to baseline
	Ratio   float64   `json:"ratio"`      // the median of them
	Value   float64   `json:"value"`      // the baseline's median
	Weft    float64   `json:"weft_value"` // weft's median, of the same kind
	Limit   float64   `json:"limit"`      // 0: there is no target
	AtLeast bool      `json:"at_least"`   // the ratio is to be at least the limit
	Met     bool      `json:"met"`
	NotHere string    `json:"not_here,omitempty"` // why it could not be run
}

// series are the values of one program by round, in the benchmark's unit.
type series struct {
	Mean []float64 `json:"mean"`
	// Typical is empty where the program does not tell it.
	Typical []float64 `json:"typical,omitempty"`
}

func (s *series) add(value bench.Sample, u unit) {
	s.Mean = append(s.Mean, value.Mean*u.scale)
	if value.Typical != 0 {
		s.Typical = append(s.Typical, value.Typical*u.scale)
	}
}

func (r result) failed() bool { return r.Failure != "" }

// print writes one line for each baseline.
func (r result) print(w io.Writer) {
	if r.failed() {
		fmt.Fprintf(w, "%s: FAILED: %s\n", r.Name, r.Failure)
		return
	}
	for _, c := range r.Comparisons {
		if c.NotHere != "" {
			fmt.Fprintf(w, "%s: %s was not run: %s\n", r.Name, c.Baseline, c.NotHere)
			continue
		}
		fmt.Fprintf(w, "%s: %s %.2f %s, weft %.2f %s, ratio %.3f %s  [%d B, window %d, %d messages, %d rounds: %.3f to %.3f]\n",
			r.Name, c.Baseline, c.Value, r.Unit, c.Weft, r.Unit, c.Ratio, verdict(c.Limit, c.AtLeast, c.Met),
			r.Bytes, r.Window, r.Messages, len(c.Ratios), slices.Min(c.Ratios), slices.Max(c.Ratios))
	}
	for _, f := range r.Figures {
		f.print(w, r)
	}
}

func (r report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
