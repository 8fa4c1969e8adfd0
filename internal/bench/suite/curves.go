package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/job"
	"github.com/weft-go/weft/internal/bench/report"
)

// curves are the benchmarks whose results are points of charts.
func curves(quick bool) (all []benchmark) {
	all = append(all, latencyBenchmarks("shm", 100_000)...)
	all = append(all, latencyBenchmarks("tcp", 20_000)...)
	all = append(all, latencyBenchmarks("sockets", 5_000)...)
	for _, on := range []struct {
		provider string
		bytes    int // of a run
		messages int
	}{{"shm", 1 << 29, 200_000}, {"tcp", 1 << 27, 50_000}} {
		for _, size := range thinned(quick, 8, 64, 512, 4<<10, 16<<10, 64<<10, 256<<10, 1<<20, 4<<20) {
			all = append(all, bandwidthPoint(on.provider, size, min(on.messages, on.bytes/size)))
		}
	}
	for _, on := range []struct {
		provider string
		messages int
	}{{"shm", 400_000}, {"tcp", 50_000}} {
		for _, window := range thinned(quick, 1, 2, 4, 8, 16, 32, 64, 128, 256) {
			all = append(all, ratePoint(on.provider, window, on.messages))
		}
	}
	for _, work := range []struct {
		kind  schedule.Collective
		bytes int
	}{
		{schedule.CollectiveBarrier, 0},
		{schedule.CollectiveAllreduce, 8},
		{schedule.CollectiveAllreduce, 1 << 20},
		{schedule.CollectiveAlltoall, 4 << 10},
	} {
		for _, ranks := range thinned(quick, 2, 3, 4, 6, 8) {
			all = append(all, collectivePoint(work.kind, work.bytes, ranks))
		}
	}
	return all
}

// thinned is every other one for a quick run.
func thinned(quick bool, points ...int) (some []int) {
	for i, p := range points {
		if !quick || i%2 == 0 {
			some = append(some, p)
		}
	}
	return some
}

// bandwidthPoint is messages in one direction, of a size.
func bandwidthPoint(provider string, size, count int) benchmark {
	const inFlight, least, most = 4 << 20, 4, 64
	b := largeBenchmark(provider, count, 0, 0)
	b.id, b.work = "bandwidth", fmt.Sprintf("connection writes of %s", sizeName(size))
	b.order.size, b.order.window = size, min(max(inFlight/size, least), most)
	b.unit = bytesPerSecond(size)
	b.curve = &report.Curve{Chart: "Bandwidth, " + provider, Line: "weft, connection", Axis: "bytes", X: float64(size)}
	return b
}

// ratePoint is a flood of endpoints with a window.
func ratePoint(provider string, window, count int) benchmark {
	b := floodBenchmark("rate", provider, count, 0)
	b.work += fmt.Sprintf(", window %d", window)
	b.order.window = window
	b.curve = &report.Curve{Chart: fmt.Sprintf("Rate of %d B, %s", messageSize, provider), Line: "weft, endpoint", Axis: "window", X: float64(window)}
	return b
}

// What a collective of a curve has for each round, about.
const (
	collectiveTime     = 100 * time.Millisecond
	collectiveDeadline = time.Minute
)

// collectivePoint is a collective of so many ranks. Each program makes as many calls as fit
// into its time.
func collectivePoint(kind schedule.Collective, bytes, ranks int) benchmark {
	work := kind.String()
	if bytes > 0 {
		work += " of " + sizeName(bytes)
	}
	cases := []job.Case{{Work: kind.String(), Bytes: bytes}}
	return benchmark{
		id: "collectives", provider: "shm", work: fmt.Sprintf("%s, %d ranks", work, ranks), unit: microseconds,
		order: order{provider: "shm", size: bytes, deadline: collectiveDeadline},
		weft: func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
			r := rankJob(ranks, t, o)
			r.Time = collectiveTime
			return only(r.Measure(ctx, cases))
		},
		baselines: []baseline{{"Open MPI", func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
			m := t.openMPI(ranks, o)
			m.Time = collectiveTime
			return only(m.Measure(ctx, cases))
		}, 0}},
		curve: &report.Curve{Chart: "Collectives, shm: " + work, Line: "weft", Axis: "ranks", X: float64(ranks)},
	}
}

// sizeName is a number of bytes.
func sizeName(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}
