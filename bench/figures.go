package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weft-go/weft/internal/bench"
)

// figure is something that has a limit of its own, and no ratio: a baseline is
// there to see what it takes otherwise.
type figure struct {
	Name     string    `json:"name"`
	Unit     string    `json:"unit"`
	Limit    float64   `json:"limit"` // at most; 0 for none
	Weft     []float64 `json:"weft"`  // by round
	Baseline []float64 `json:"baseline"`
	Met      bool      `json:"met"`
}

// measureFigures does the work once, and returns a value for each figure.
type measureFigures func(ctx context.Context, t *tools, o order) ([]float64, error)

// figureSet is the figures of a benchmark that has no ratios.
type figureSet struct {
	figures        []figure // without values
	label          string   // of the baseline
	weft, baseline measureFigures
}

// run alternates the baseline with weft, as for ratios.
func (s figureSet) run(ctx context.Context, t *tools, o order, rounds int) ([]figure, error) {
	figures := slices.Clone(s.figures)
	for range rounds {
		theirs, err := s.baseline(ctx, t, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.label, err)
		}
		mine, err := s.weft(ctx, t, o)
		if err != nil {
			return nil, fmt.Errorf("weft: %w", err)
		}
		if len(mine) != len(figures) || len(theirs) != len(figures) {
			return nil, errors.New("not as many values as figures")
		}
		for i := range figures {
			figures[i].Weft = append(figures[i].Weft, mine[i])
			figures[i].Baseline = append(figures[i].Baseline, theirs[i])
		}
	}
	for i := range figures {
		f := &figures[i]
		f.Met = f.Limit == 0 || bench.Median(f.Weft) <= f.Limit
	}
	return figures, nil
}

func (f figure) print(w io.Writer, r result) {
	fmt.Fprintf(w, "%s: %s: %s %.2f %s, weft %.2f %s %s  [%d connections, %d rounds: %.2f to %.2f]\n",
		r.Name, f.Name, r.Label, bench.Median(f.Baseline), f.Unit, bench.Median(f.Weft), f.Unit, verdict(f.Limit, false, f.Met),
		r.Messages, len(f.Weft), slices.Min(f.Weft), slices.Max(f.Weft))
}

// verdict is what a report says of a target.
func verdict(limit float64, atLeast, met bool) string {
	if limit == 0 {
		return "(no target)"
	}
	sign, word := "<=", "MISSED"
	if atLeast {
		sign = ">="
	}
	if met {
		word = "met"
	}
	return fmt.Sprintf("(target %s %.2f) %s", sign, limit, word)
}
