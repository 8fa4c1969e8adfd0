package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weft-go/weft/internal/bench"
)

// run alternates the baselines with weft, one after the other, rounds times.
func (b benchmark) run(ctx context.Context, t *tools, rounds int) result {
	r := result{
		ID: b.id, Name: b.name(), Provider: b.provider, Work: b.work, Unit: b.unit.name,
		Bytes: b.order.size, Window: b.order.window, Messages: b.order.count,
	}
	if b.figures != nil {
		var err error
		r.Label = b.figures.label
		if r.Figures, err = b.figures.run(ctx, t, b.order, rounds); err != nil {
			r.Failure = err.Error()
		}
		return r
	}
	baselines := make([]comparison, len(b.baselines))
	for i, base := range b.baselines {
		baselines[i] = comparison{Baseline: base.label, Limit: base.limit, AtLeast: b.unit.rate}
	}
	for range rounds {
		for i, base := range b.baselines {
			c := &baselines[i]
			if c.NotHere != "" {
				continue
			}
			value, err := base.measure(ctx, t, b.order)
			var notHere bench.NotHereError
			switch {
			case errors.As(err, &notHere):
				c.NotHere = notHere.Error()
			case err != nil:
				r.Failure = fmt.Sprintf("%s: %v", base.label, err)
				return r
			default:
				c.add(value, b.unit)
			}
		}
		value, err := b.weft(ctx, t, b.order)
		if err != nil {
			r.Failure = fmt.Sprintf("weft: %v", err)
			return r
		}
		r.Weft.add(value, b.unit)
	}
	for i := range baselines {
		baselines[i].conclude(r.Weft)
	}
	r.Comparisons = baselines
	return r
}

// conclude takes the ratio of each round, and the median of those: a round's
// two runs saw the machine in about the same state. It compares the typical
// values where both have them, and else the means.
func (c *comparison) conclude(weft series) {
	if c.NotHere != "" {
		return
	}
	mine, theirs := weft.Typical, c.Typical
	if len(theirs) == 0 {
		mine, theirs = weft.Mean, c.Mean
	}
	c.Ratios = bench.Ratios(mine, theirs)
	c.Value, c.Weft, c.Ratio = bench.Median(theirs), bench.Median(mine), bench.Median(c.Ratios)
	switch {
	case c.Limit == 0:
		c.Met = true
	case c.AtLeast:
		c.Met = c.Ratio >= c.Limit
	default:
		c.Met = c.Ratio <= c.Limit
	}
}

// profileCount is how many times as long a run with a profile is: a sample is
// taken a hundred times a second.
const profileCount = 8

// profile has weft do the work once more, and write profiles. What is measured
// is not told, because profiles take time as well.
func (b benchmark) profile(ctx context.Context, t *tools, folder string) (files string, err error) {
	watched := *t
	name := strings.NewReplacer(" ", "-", ",", "", "/", "-").Replace(b.name())
	watched.profile = filepath.Join(folder, name)
	o := b.order
	if b.figures != nil {
		_, err = b.figures.weft(ctx, &watched, o)
	} else {
		o.count, o.deadline = min(o.count*profileCount, mostMessages), o.deadline*profileCount
		_, err = b.weft(ctx, &watched, o)
	}
	files = watched.profile + "-*.pprof"
	if written, _ := filepath.Glob(files); err == nil && len(written) == 0 {
		err = errors.New("it wrote none")
	}
	return files, err
}
