// The race detector makes other programs of the sides, and CI has little time: what
// they use of weft is tested with it where it is.

//go:build !race

package suite

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/report"
)

func TestMain(m *testing.M) {
	PlayPart()
	os.Exit(m.Run())
}

func TestNoMatch(t *testing.T) {
	_, err := Run(context.Background(), Config{Match: regexp.MustCompile("no such benchmark")})
	require.EqualError(t, err, `no benchmark matches "no such benchmark", such as "P1 shm 8 B ping-pong" does`)
}

// Names are what results of two runs are found by.
func TestNamesAreDifferent(t *testing.T) {
	for _, quick := range []bool{false, true} {
		names, err := Names(nil, quick)
		require.NoError(t, err)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names))
	}
	some, err := Names(nil, true)
	require.NoError(t, err)
	require.Less(t, len(some), len(benchmarks(false)))
	for _, target := range []string{"P1 ", "P2 ", "P3 ", "P4 ", "P5 ", "P6 ", "P7 ", "P8 ", "P9 ", "P10 ", "P11 "} {
		require.True(t, slices.ContainsFunc(some, func(name string) bool { return strings.HasPrefix(name, target) }), target)
	}
}

func nothing(int) {}

// values are those of a program that takes so many seconds.
func values(seconds ...float64) measure {
	n := 0
	return func(context.Context, *tools, order) (bench.Sample, error) {
		n++
		return bench.Sample{Mean: seconds[(n-1)%len(seconds)]}, nil
	}
}

func failing(err error) measure {
	return func(context.Context, *tools, order) (bench.Sample, error) { return bench.Sample{}, err }
}

func TestFailureIsReported(t *testing.T) {
	b := benchmark{id: "P0", work: "nothing", weft: failing(context.DeadlineExceeded)}
	r := b.run(context.Background(), nil, bench.LeastRounds, nothing)
	require.Equal(t, "weft: context deadline exceeded", r.Failure)
	b.weft = values(1)
	b.baselines = []baseline{{"C", failing(context.DeadlineExceeded), 0}}
	r = b.run(context.Background(), nil, bench.LeastRounds, nothing)
	require.Equal(t, "C: context deadline exceeded", r.Failure)
}

// A baseline that is not here is told, and the others are measured.
func TestAbsentBaselines(t *testing.T) {
	why := bench.NotHereError{Err: errors.New("no such program")}
	b := benchmark{
		id: "P0", work: "nothing", unit: microseconds, weft: values(3e-6, 4e-6, 5e-6),
		baselines: []baseline{{"C", failing(why), 1.1}, {"TCP", values(1e-6), 4}},
	}
	r := b.run(context.Background(), nil, 3, nothing)
	require.Empty(t, r.Failure)
	require.Equal(t, "no such program", r.Comparisons[0].NotHere)
	require.InDeltaSlice(t, []float64{3, 4, 5}, r.Comparisons[1].Ratios, 1e-9)
	require.True(t, r.Comparisons[1].Met)
	require.InDeltaSlice(t, []float64{3, 4, 5}, r.Weft.Mean, 1e-9)

	// Nothing of a provider that this machine lacks is measured.
	lacking := &tools{lacking: map[string]error{"warp": errors.New("no such provider")}}
	b.provider = "warp"
	require.Equal(t, "no such provider", b.run(context.Background(), lacking, 3, nothing).NotHere)
}

// An interrupt takes the round along that is not complete.
func TestInterruptedRounds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	b := benchmark{id: "P0", work: "nothing", unit: microseconds, baselines: []baseline{{"C", values(1e-6), 0}}}
	b.weft = func(context.Context, *tools, order) (bench.Sample, error) {
		if n++; n == 3 {
			cancel()
			return bench.Sample{}, errors.New("killed")
		}
		return bench.Sample{Mean: 2e-6}, nil
	}
	r := b.run(ctx, nil, 5, nothing)
	require.Empty(t, r.Failure)
	require.Equal(t, []float64{2, 2}, r.Comparisons[0].Ratios)
	require.Len(t, r.Comparisons[0].Mean, 2)
	require.Nil(t, b.run(ctx, nil, 5, nothing))
}

// What was interrupted before anything was measured has no report, which would be written
// over the one that there is.
func TestInterruptedBeforeAnything(t *testing.T) {
	interrupt := errors.New("interrupt")
	ctx, cancel := context.WithCancelCause(context.Background())
	r, err := Run(ctx, Config{
		Match: regexp.MustCompile("^P7 1 receives posted$"), Rounds: 5, Quick: true,
		Progress: func(int, int, string) { cancel(interrupt) },
	})
	require.Nil(t, r)
	require.ErrorIs(t, err, interrupt)
}

// What is work of one process is named where profiles were asked for.
func TestUnprofiled(t *testing.T) {
	once := func(context.Context, *tools, order) (bench.Sample, error) { return bench.Sample{Mean: 2e-6}, nil }
	alone := benchmark{id: "P0", work: "alone", unit: microseconds, weft: once}
	for folder, want := range map[string][]string{"": nil, t.TempDir(): {alone.name()}} {
		var document report.Report
		require.NoError(t, Config{Rounds: 5, Profile: folder}.measure(t.Context(), nil, []benchmark{alone}, &document))
		require.Equal(t, want, document.Unprofiled)
	}
}

// An interrupt during a profile is one of the run, also if all has been measured, and no
// failure of the profile.
func TestInterruptedProfile(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	usable := &tools{lacking: map[string]error{"warp": nil}}
	b := benchmark{id: "P0", provider: "warp", work: "nothing", unit: microseconds}
	b.weft = func(_ context.Context, t *tools, _ order) (bench.Sample, error) {
		if t.profile != "" {
			cancel()
			return bench.Sample{}, errors.New("killed")
		}
		return bench.Sample{Mean: 2e-6}, nil
	}
	var document report.Report
	require.NoError(t, Config{Rounds: 5, Profile: t.TempDir()}.measure(ctx, usable, []benchmark{b}, &document))
	require.True(t, document.Interrupted)
	require.Len(t, document.Results[0].Weft.Mean, 5)
}

// Without a compiler the C twins are absent, and no more.
func TestNoCompiler(t *testing.T) {
	t.Setenv("CC", "/nowhere/cc")
	built, err := newTools(context.Background())
	require.NoError(t, err)
	defer built.close()
	for _, b := range []benchmark{pingPongBenchmark("P1", "shm", 10, 1), latencyBenchmarks("shm", 10)[0]} {
		var missing bench.NotHereError
		if b.figures != nil {
			_, err = b.figures.baseline(context.Background(), built, b.order)
		} else {
			_, err = b.baselines[0].measure(context.Background(), built, b.order)
		}
		require.ErrorAs(t, err, &missing)
		require.ErrorContains(t, err, "/nowhere/cc")
	}
	require.Contains(t, built.describe(context.Background())[0].NotHere, "/nowhere/cc")
}

// What the benchmarks of the matcher post is matched.
func TestMatcherExchanges(t *testing.T) {
	for _, b := range matcherBenchmarks() {
		if b.curve.X > mostCached {
			continue
		}
		b.order.count = 64
		r := b.run(context.Background(), nil, 1, nothing)
		require.Empty(t, r.Failure)
		require.Positive(t, r.Weft.Typical[0])
	}
}

func TestStopwatchCoversTheRun(t *testing.T) {
	for _, c := range []struct{ count, least, parts, step int }{
		{1, 1, 1, 1}, {10, 100, 1, 10}, {1000, 1, 512, 1}, {5000, 1000, 5, 1000},
	} {
		w := newStopwatch(order{warmup: 3, count: c.count}, c.least)
		var marked []int
		for i := range c.count + 4 {
			if i == w.next {
				w.mark()
				marked = append(marked, i)
			}
		}
		require.Len(t, marked, c.parts+1)
		require.Equal(t, 3, marked[0])
		require.Equal(t, 3+c.parts*c.step, marked[c.parts])
		took, err := w.stop(2)
		require.NoError(t, err)
		require.Equal(t, 2*c.count, took.operations)
		require.Equal(t, 2*c.step, took.partOperations)
		require.GreaterOrEqual(t, took.elapsed, took.part)
	}
	_, err := newStopwatch(order{warmup: 1, count: 1}, 1).stop(1)
	require.Error(t, err)
}

// Where each message is timed, the whole distribution is told.
func TestStopwatchOfEach(t *testing.T) {
	o := order{work: latencyWork, warmup: 1, count: 1000}
	w := newStopwatch(o, pingPongPart)
	for i := range w.parts + 1 {
		w.marks = append(w.marks, time.Duration(i*(i+1)/2)) // the parts take 1, 2, 3 ...
	}
	took, err := w.stop(2)
	require.NoError(t, err)
	require.Equal(t, len(percentiles)+4, len(o.figures(took)))
	for i, p := range percentiles {
		require.InDelta(t, p*10, float64(took.percentiles[i]), 1)
	}
	require.Len(t, order{work: pingPongWork}.figures(took), 4)
}
