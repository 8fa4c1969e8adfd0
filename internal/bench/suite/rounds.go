package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/report"
)

// run alternates the baselines with weft, one after the other, rounds times. begin hears of
// each round. A context that ends takes the rounds that are not complete along; without any
// there is no result.
func (b benchmark) run(ctx context.Context, t *tools, rounds int, begin func(round int)) *report.Result {
	r := &report.Result{
		ID: b.id, Name: b.name(), Provider: b.provider, Work: b.work, Unit: b.unit.name, MoreIsBetter: b.unit.rate,
		Bytes: b.order.size, Window: b.order.window, Messages: b.order.count, Limit: b.limit, Curve: b.curve,
	}
	if err := t.usable(ctx, b.provider); err != nil {
		r.NotHere = err.Error()
		return r
	}
	if b.figures != nil {
		r.Baseline, r.Figures = b.figures.label, b.figures.blank()
	}
	for _, base := range b.baselines {
		r.Comparisons = append(r.Comparisons, report.Comparison{Baseline: base.label, Limit: base.limit, AtLeast: b.unit.rate})
	}
	done := 0
	for ; done < rounds && ctx.Err() == nil; done++ {
		begin(done)
		round := b.round
		if b.figures != nil {
			round = b.figures.round
		}
		if err := round(ctx, t, b.order, r); ctx.Err() != nil {
			break
		} else if err != nil {
			r.Failure = err.Error()
			return r
		}
	}
	if done == 0 {
		return nil
	}
	for i := range r.Comparisons {
		r.Comparisons[i].Conclude(r.Weft)
	}
	for i := range r.Figures {
		r.Figures[i].Conclude()
	}
	return r
}

// round measures each program once. It adds nothing to the result unless all could be
// measured, or are not here.
func (b benchmark) round(ctx context.Context, t *tools, o order, r *report.Result) error {
	values := make([]bench.Sample, len(b.baselines))
	for i, base := range b.baselines {
		if r.Comparisons[i].NotHere != "" {
			continue
		}
		var err error
		if values[i], err = base.measure(ctx, t, o); notHere(err, &r.Comparisons[i].NotHere) {
			continue
		} else if err != nil {
			return fmt.Errorf("%s: %w", base.label, err)
		}
	}
	mine, err := b.weft(ctx, t, o)
	if err != nil {
		return fmt.Errorf("weft: %w", err)
	}
	r.Weft.Add(mine, b.unit.scale)
	for i, value := range values {
		if c := &r.Comparisons[i]; c.NotHere == "" {
			c.Add(value, b.unit.scale)
		}
	}
	return nil
}

// notHere notes the reason of a bench.NotHereError.
func notHere(err error, why *string) bool {
	var missing bench.NotHereError
	if !errors.As(err, &missing) {
		return false
	}
	*why = missing.Error()
	return true
}

// profileCount is how many times as long a run with a profile is: a sample is
// taken a hundred times a second.
const profileCount = 8

// hasProfile: work of this process alone has none.
func (b benchmark) hasProfile() bool { return b.provider != "" }

// profile has weft do the work once more, and write profiles. What is measured
// is not told, because profiles take time as well.
func (b benchmark) profile(ctx context.Context, t *tools, folder string) (err error) {
	watched := *t
	watched.profile = filepath.Join(folder, b.profileName())
	o := b.order
	if b.figures != nil {
		_, err = b.figures.weft(ctx, &watched, o)
	} else {
		o.count, o.deadline = min(o.count*profileCount, mostMessages), o.deadline*profileCount
		_, err = b.weft(ctx, &watched, o)
	}
	if written, _ := filepath.Glob(watched.profile + "-*.pprof"); err == nil && len(written) == 0 {
		err = errors.New("it wrote none")
	}
	return err
}

// profileName is what the names of the profiles begin with.
func (b benchmark) profileName() string {
	return strings.NewReplacer(" ", "-", ",", "", "/", "-").Replace(b.name())
}
