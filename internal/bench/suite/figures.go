package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-go/weft/internal/bench/report"
)

// measureFigures does the work once, and returns a value for each figure.
type measureFigures func(ctx context.Context, t *tools, o order) ([]float64, error)

// figureSet is the figures of a benchmark that has no ratios.
type figureSet struct {
	figures        []report.Figure // without values
	label          string          // of the baseline
	weft, baseline measureFigures
}

func (s figureSet) blank() []report.Figure { return slices.Clone(s.figures) }

// round measures the baseline and then weft, as for ratios.
func (s figureSet) round(ctx context.Context, t *tools, o order, r *report.Result) error {
	var theirs []float64
	if r.BaselineNotHere == "" {
		var err error
		if theirs, err = s.baseline(ctx, t, o); err != nil && !notHere(err, &r.BaselineNotHere) {
			return fmt.Errorf("%s: %w", s.label, err)
		}
	}
	mine, err := s.weft(ctx, t, o)
	if err != nil {
		return fmt.Errorf("weft: %w", err)
	}
	if len(mine) != len(r.Figures) || r.BaselineNotHere == "" && len(theirs) != len(r.Figures) {
		return errors.New("not as many values as figures")
	}
	for i := range r.Figures {
		f := &r.Figures[i]
		f.Weft = append(f.Weft, mine[i])
		if r.BaselineNotHere == "" {
			f.Baseline = append(f.Baseline, theirs[i])
		}
	}
	return nil
}
