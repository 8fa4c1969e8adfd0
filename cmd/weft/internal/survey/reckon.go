package survey

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/collective/schedule/cost"
	"github.com/weft-go/weft/internal/bench"
)

// Reckon says what calls would cost on a network, by each algorithm: that of ParseNetwork.
func Reckon(ctx context.Context, c Config, name, settings string) (*Report, error) {
	network, err := ParseNetwork(name, settings)
	if err != nil {
		return nil, err
	}
	c.Algorithms, c.Memory = true, 0
	report := &Report{Environment: bench.Describe(ctx), Simulated: name, Assumed: assumed(network)}
	if settings != "" {
		report.Simulated += " with " + settings
	}
	if report.Results, _, err = c.newResults(); err != nil {
		return nil, err
	}
	if err := reckonAll(ctx, c, network, report.Results); err != nil {
		return nil, err
	}
	return report, nil
}

// reckonAll fills in what calls would cost. Many ranks take seconds, so all cores do it.
// After an error the results are not to be looked at.
func reckonAll(ctx context.Context, c Config, network cost.Network, results []*Result) error {
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	var done atomic.Int64
	start := func(r *Result) {
		group.Go(func() error {
			if err := context.Cause(working); err != nil {
				return err
			}
			c.progress(len(results), int(done.Load()), fmt.Sprintf("%s on %d ranks", r.Collective, r.Ranks))
			defer done.Add(1)
			return reckon(working, network, r)
		})
	}
	ended := make(chan error, 1)
	go func() {
		for _, r := range results {
			start(r)
		}
		ended <- group.Wait()
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		// Calls of many ranks, which nothing interrupts, end with the process.
		return context.Cause(ctx)
	}
}

// mostPieces is how many pieces what a rank puts is cut into, so that the plans of many ranks
// are not too much to be carried out.
const mostPieces = 64

func reckon(ctx context.Context, network cost.Network, r *Result) error {
	kind, err := schedule.ParseCollective(r.Collective)
	if err != nil {
		return err
	}
	for i := range r.Algorithms {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		algorithm, err := schedule.ParseAlgorithm(r.Algorithms[i].Name)
		if err != nil {
			return err
		}
		call, err := callOf(kind, algorithm, r.Ranks, r.Bytes, network.Mapped)
		if err != nil {
			return err
		}
		if chunk := call.Chunk; chunk > 0 {
			call.Chunk = 0
			totals, err := call.Totals()
			if err != nil {
				return err
			}
			call.Chunk = max(chunk, totals.Most/mostPieces)
		}
		took, err := cost.Cost(call, element, network)
		if err != nil {
			return err
		}
		r.Algorithms[i].Predicted = took.Seconds() * 1e6
	}
	return nil
}
