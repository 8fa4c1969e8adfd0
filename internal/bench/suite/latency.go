package suite

import (
	"context"
	"fmt"

	"github.com/weft-go/weft/internal/bench/report"
)

// latencyBenchmarks are distributions: how long the messages of a ping-pong take, each by
// itself, of endpoints beside C and of connections beside package net. Reading the clock for
// each is a part of what is told, of all four.
func latencyBenchmarks(provider string, count int) []benchmark {
	distribution := func(line string, weft, other pairProgram, label string) benchmark {
		return benchmark{
			id: "latency", provider: provider, work: fmt.Sprintf("%d B ping-pong of %ss, each message", messageSize, line), unit: microseconds,
			order:   orderFor(latencyWork, provider, count, 1),
			figures: &figureSet{percentileFigures(), label, measureLatency(weft), measureLatency(other)},
			curve:   &report.Curve{Chart: fmt.Sprintf("Latency of %d B, %s", messageSize, provider), Line: "weft, " + line, Axis: "percentile"},
		}
	}
	return []benchmark{
		distribution("endpoint", weftPair, twinPair, "C"),
		distribution("connection", connSideOf(), weftSide(sideOptions{over: overNet}), "Go net TCP"),
	}
}

// percentileFigures are those of percentiles. Of most the chart is enough.
func percentileFigures() (all []report.Figure) {
	for _, p := range percentiles {
		name := fmt.Sprintf("%v %% within", p)
		if p == 100 {
			name = "the longest"
		}
		all = append(all, report.Figure{
			Name: name, Unit: microseconds.name, Percentile: p,
			Minor: p != 50 && p != 99 && p != 99.9 && p != 100,
		})
	}
	return all
}

// measureLatency returns half a round trip for each of percentiles, in microseconds.
func measureLatency(program pairProgram) measureFigures {
	return func(ctx context.Context, t *tools, o order) ([]float64, error) {
		first, second, err := program.sides(t, o)
		if err != nil {
			return nil, err
		}
		a, err := startPair(ctx, first, second, o.deadline, len(o.figures(times{})))
		if err != nil {
			return nil, err
		}
		if _, err := a.measured(); err != nil {
			return nil, err
		}
		values := make([]float64, len(percentiles))
		told := len(order{}.figures(times{}))
		for i := range values {
			// One of the two measured, the other says 0.
			values[i] = float64(a.figures[0][told+i]+a.figures[1][told+i]) / 1e3 / 2
		}
		return values, nil
	}
}
