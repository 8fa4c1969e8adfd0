package suite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/report"
)

// benchmark is one piece of work, done by weft and by baselines.
type benchmark struct {
	id        string // of the target, such as P1
	provider  string // empty: work of this process alone
	work      string // in words, such as "8 B ping-pong"
	order     order
	unit      unit
	weft      measure
	baselines []baseline
	// limit is what weft's value is to be at most, whatever the ratios; 0 is none.
	limit float64
	// figures are instead of all that, if there are no ratios.
	figures *figureSet
	curve   *report.Curve // that it is a point of; nil for none
}

// measure does the work once, and returns what it took.
type measure func(ctx context.Context, t *tools, o order) (bench.Sample, error)

// baseline is what weft is compared with, and the target of the ratio weft to
// baseline: at most the limit for a time, at least for a rate, and none if it
// is 0.
type baseline struct {
	label   string
	measure measure
	limit   float64
}

// unit is what a benchmark counts in.
type unit struct {
	name  string
	scale float64 // from seconds, or from operations a second
	rate  bool    // more is better
}

var (
	microseconds = unit{name: "us", scale: 1e6}
	millions     = unit{name: "M/s", scale: 1e-6, rate: true}
)

// bytesPerSecond is for operations of so many bytes each.
func bytesPerSecond(size int) unit {
	return unit{name: "GB/s", scale: float64(size) * 1e-9, rate: true}
}

func (b benchmark) name() string {
	if b.provider == "" {
		return b.id + " " + b.work
	}
	return b.id + " " + b.provider + " " + b.work
}

// benchmarks are all there are. What is added here is run, printed and listed. A quick run
// has those of targets and every other point of curves, with fewer messages.
func benchmarks(quick bool) []benchmark {
	connections, watched := 1_000, 4*time.Second
	if quick {
		connections, watched = 100, 500*time.Millisecond
	}
	all := slices.Concat([]benchmark{
		pingPongBenchmark("P1", "shm", 500_000, 1.10, baseline{fiPingpongProgram, fiPingpong, 1.10}),
		injectBenchmark("P1", "shm", 500_000, 1.10),
		floodBenchmark("P2", "shm", 2_000_000, 1.0),
		floodBenchmark("P2", "tcp", 200_000, 1.0),
		orderedBenchmark(500_000, 1.25),
		eagerBenchmark("P3", "shm", 500_000, 1.4),
		largeBenchmark("shm", 4_000, 0.95, 2.5),
		largeBenchmark("tcp", 1_000, 0, 0),
		singleBenchmark("shm", 1_000_000, 1.0),
		singleBenchmark("tcp", 200_000, 1.0),
		gatheredBenchmark("shm", 2_000_000, 4),
		gatheredBenchmark("tcp", 400_000, 4),
		unattendedBenchmark("shm", 200_000),
		unattendedBenchmark("tcp", 50_000),
		unattendedBenchmark("sockets", 10_000),
		echoBenchmark(20_000, 15),
	}, matcherBenchmarks(), []benchmark{
		rankBenchmark(500_000, 1.0),
		allreduceBenchmark(2, 8, 100_000, false),
		allreduceBenchmark(2, 1<<20, 500, false),
		allreduceBenchmark(2, 1<<20, 500, true),
		allreduceBenchmark(4, 8, 2_000, false),
		allreduceBenchmark(4, 1<<20, 200, false),
		allreduceBenchmark(4, 1<<20, 200, true),
		pingPongBenchmark("P10", "sockets", 10_000, 1.5),
		eagerBenchmark("P10", "sockets", 10_000, 0),
		idleBenchmark("shm", connections, watched),
		idleBenchmark("tcp", connections, watched),
	}, curves(quick))
	if quick {
		for i := range all {
			all[i].order = all[i].order.quick()
		}
		return all
	}
	all = append(all,
		rendezvousBenchmark("shm", 500, 0.9),
		rendezvousBenchmark("tcp", 200, 0.9),
		deviceOneWay(10_000),
		deviceLarge(500),
		deviceRendezvous(100),
	)
	return append(all, thresholdBenchmarks()...)
}

// quick has a tenth of the messages, but some.
func (o order) quick() order {
	const least = 50
	if o.work != idleWork {
		o.count = min(o.count, max(o.count/10, least))
		o.warmup = max(o.count/10, 1)
	}
	return o
}

// ipSource is where providers with IP addresses are bound to: traffic stays on
// the loopback interface.
func ipSource(provider string) string {
	if provider == "shm" || provider == "efa" {
		return ""
	}
	return "127.0.0.1"
}

const messageSize = 8

func orderFor(work, provider string, count, window int) order {
	return order{
		work: work, provider: provider, source: ipSource(provider),
		warmup: max(count/10, 1), count: count, window: window, size: messageSize, deadline: time.Minute,
	}
}

func pingPongBenchmark(id, provider string, count int, limit float64, more ...baseline) benchmark {
	return benchmark{
		id: id, provider: provider, work: fmt.Sprintf("%d B ping-pong", messageSize),
		order:     orderFor(pingPongWork, provider, count, 1),
		unit:      microseconds,
		weft:      perOperation(weftPair),
		baselines: append([]baseline{{"C", perOperation(twinPair), limit}}, more...),
	}
}

// injectBenchmark is a ping-pong that sends as fi_pingpong does.
func injectBenchmark(id, provider string, count int, limit float64) benchmark {
	b := pingPongBenchmark(id, provider, count, limit, baseline{"fi_pingpong", fiPingpong, limit})
	b.work += " by inject"
	b.order.inject = true
	return b
}

func floodBenchmark(id, provider string, count int, limit float64) benchmark {
	return benchmark{
		id: id, provider: provider, work: fmt.Sprintf("%d B flood", messageSize),
		order:     orderFor(floodWork, provider, count, 64),
		unit:      millions,
		weft:      operationsPerSecond(weftPair),
		baselines: []baseline{{"C", operationsPerSecond(twinPair), limit}},
	}
}

// pairProgram says what the two processes of a pair run; nil is that there is no such program.
type pairProgram func(t *tools) []string

func twinPair(t *tools) []string { return t.twin }
func weftPair(t *tools) []string { return weftSide(sideOptions{})(t) }

// sides are the commands of both sides, or why there are none.
func (program pairProgram) sides(t *tools, o order) (first, second []string, err error) {
	command := program(t)
	if command == nil {
		return nil, nil, t.noTwin
	}
	first, second = o.sides(command)
	return first, second, nil
}

// run has a program play both sides.
func (program pairProgram) run(ctx context.Context, t *tools, o order) (measurement, error) {
	first, second, err := program.sides(t, o)
	if err != nil {
		return measurement{}, err
	}
	return runPair(ctx, first, second, o.deadline)
}

func perOperation(program pairProgram) measure {
	return func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
		m, err := program.run(ctx, t, o)
		return bench.Sample{
			Mean:    m.elapsed.Seconds() / float64(m.operations),
			Typical: m.part.Seconds() / float64(m.partOperations),
		}, err
	}
}

func operationsPerSecond(program pairProgram) measure {
	return func(ctx context.Context, t *tools, o order) (bench.Sample, error) {
		m, err := program.run(ctx, t, o)
		return bench.Sample{
			Mean:    float64(m.operations) / m.elapsed.Seconds(),
			Typical: float64(m.partOperations) / m.part.Seconds(),
		}, err
	}
}
