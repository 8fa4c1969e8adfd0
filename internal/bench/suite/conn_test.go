//go:build !race

package suite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/bench/report"
	"github.com/weft-go/weft/internal/testenv"
)

func overConnection(built *tools, o sideOptions) []string {
	if o.over == "" {
		o.over = overConn
	}
	return weftSide(o)(built)
}

func TestSideOptions(t *testing.T) {
	for _, want := range []sideOptions{
		{over: overFabric, sender: senderWrite, idle: time.Second},
		{over: overNet, sender: senderTry, ungathered: true, idle: time.Minute, profile: "/tmp/some where"},
	} {
		var got sideOptions
		flags := got.flags(&bytes.Buffer{})
		o := tinyOrder("shm", floodWork)
		require.NoError(t, flags.Parse(append(want.args(), o.args()...)))
		require.Equal(t, want, got)
		left, err := parseOrder(flags.Args())
		require.NoError(t, err)
		require.Equal(t, o, left)
	}
	for _, args := range [][]string{
		{"-over=nothing"}, {"-over=conn", "-sender=nobody"}, {"-no such flag"},
	} {
		var stderr bytes.Buffer
		o := tinyOrder("shm", floodWork)
		o.first = true
		in := bytes.NewBufferString("peer\t\n")
		require.NotZero(t, sideMain(append(args, o.args()...), in, &bytes.Buffer{}, &stderr), args)
		require.NotEmpty(t, stderr.String(), args)
	}
}

// Every message arrives, whatever the API and the size.
func TestConnectionsCarry(t *testing.T) {
	onShm(t, func(t *testing.T, built *tools, provider string) {
		pingPong, flood := tinyOrder(provider, pingPongWork), tinyOrder(provider, floodWork)
		two, long, large := pingPong, pingPong, flood
		two.two = true
		long.size = 20_000
		large.size, large.window, large.count = 1<<20, 4, 20
		for _, c := range []struct {
			order      order
			options    sideOptions
			operations int
		}{
			{pingPong, sideOptions{}, 1000},
			{two, sideOptions{}, 1000},
			{long, sideOptions{}, 1000},
			{pingPong, sideOptions{over: overStream}, 1000},
			{flood, sideOptions{sender: senderWrite}, 500},
			{flood, sideOptions{sender: senderTry}, 500},
			{flood, sideOptions{sender: senderAsync}, 500},
			{flood, sideOptions{sender: senderFragments}, 500},
			{flood, sideOptions{sender: senderFragments, ungathered: true}, 500},
			{large, sideOptions{sender: senderAsync}, 20},
			{large, sideOptions{sender: senderFragments}, 20},
		} {
			first, second := c.order.sides(overConnection(built, c.options))
			m, err := runPair(context.Background(), first, second, c.order.deadline)
			require.NoError(t, err, "%q", first)
			require.Equal(t, c.operations, m.operations, "%q", first)
			require.Contains(t, m.device[1], provider)
		}
	})
}

func TestTCPCarries(t *testing.T) {
	built, err := newTools(context.Background())
	require.NoError(t, err)
	defer built.close()
	for _, work := range []string{pingPongWork, floodWork} {
		o := tinyOrder("shm", work)
		o.size = 5000
		first, second := o.sides(overConnection(built, sideOptions{over: overNet}))
		m, err := runPair(context.Background(), first, second, o.deadline)
		require.NoError(t, err)
		require.Positive(t, m.operations)
		require.Equal(t, "net", m.device[1])
	}
}

// Whoever waits for a message that does not come says so, and one that has
// another number or length is not taken for it.
func TestConnectionsNotice(t *testing.T) {
	onShm(t, func(t *testing.T, built *tools, provider string) {
		program := overConnection(built, sideOptions{sender: senderWrite})
		o := tinyOrder(provider, floodWork)
		o.deadline = 2 * time.Second
		less, _ := o.sides(program)
		o.count++
		_, more := o.sides(program)
		_, err := runPair(context.Background(), less, more, o.deadline)
		require.Error(t, err)
		// The other side may have ended first, and taken its connection along.
		require.Regexp(t, "the deadline has passed|peer lost", err.Error())

		o.deadline = 20 * time.Second
		o.work = pingPongWork
		_, other := o.sides(program)
		_, err = runPair(context.Background(), less, other, o.deadline)
		require.Error(t, err)

		o.size = 16
		long, _ := o.sides(program)
		_, err = runPair(context.Background(), long, other, o.deadline)
		require.ErrorContains(t, err, "the message has 16 bytes")
	})
}

// Each benchmark there is does its work, in small.
func TestBenchmarksRun(t *testing.T) {
	built, err := newTools(context.Background())
	require.NoError(t, err)
	t.Cleanup(built.close)
	// Of a curve, and of the sizes at which a limit is looked for, the first stands for all.
	seen := map[string]bool{}
	for _, b := range benchmarks(false) {
		alike := ""
		switch {
		case b.provider == "":
			continue
		case b.curve != nil && b.figures == nil:
			alike = b.curve.Chart
		case b.id == "limit":
			_, work, _ := strings.Cut(b.work, " B ")
			alike = b.id + b.provider + work
		}
		if alike != "" && seen[alike] {
			continue
		}
		seen[alike] = true
		if b.order.work == idleWork {
			b = idleBenchmark(b.provider, 20, 50*time.Millisecond)
		}
		t.Run(b.name(), func(t *testing.T) {
			testenv.Need(t, b.provider, built.usable(t.Context(), b.provider)) // before others do, at once
			t.Parallel()
			b.order.warmup, b.order.count = 3, min(b.order.count, 200, 200<<20/max(b.order.size, 1))
			// It tells too few digits of so short a run; TestFiPingpong has it.
			b.baselines = slices.DeleteFunc(b.baselines, func(base baseline) bool { return base.label == fiPingpongProgram })
			r := b.run(context.Background(), built, 1, nothing)
			require.Empty(t, r.Failure)
			require.Empty(t, r.NotHere)
			if b.figures == nil {
				require.Len(t, r.Weft.Mean, 1)
				require.Len(t, r.Comparisons, len(b.baselines))
				require.Positive(t, r.Weft.Mean[0])
			} else {
				require.NotEmpty(t, r.Figures)
				for _, f := range r.Figures {
					require.Len(t, f.Weft, 1)
					require.Len(t, f.Baseline, 1)
				}
			}
			require.Contains(t, r.Brief(), b.name()+": ")
		})
	}
}

func TestFiguresHaveLimits(t *testing.T) {
	values := func(all ...float64) measureFigures {
		return func(context.Context, *tools, order) ([]float64, error) { return all, nil }
	}
	s := figureSet{
		figures: []report.Figure{{Name: "low", Limit: 4}, {Name: "high", Limit: 4}, {Name: "free"}},
		label:   "TCP", weft: values(3, 5, 7), baseline: values(1, 1, 1),
	}
	b := benchmark{id: "P0", work: "nothing", figures: &s}
	r := b.run(context.Background(), nil, 2, nothing)
	require.Empty(t, r.Failure)
	require.Equal(t, "TCP", r.Baseline)
	require.Equal(t, []report.Figure{
		{Name: "low", Limit: 4, Weft: []float64{3, 3}, Baseline: []float64{1, 1}, Met: true},
		{Name: "high", Limit: 4, Weft: []float64{5, 5}, Baseline: []float64{1, 1}},
		{Name: "free", Weft: []float64{7, 7}, Baseline: []float64{1, 1}, Met: true},
	}, r.Figures)

	s.baseline = values(1)
	require.NotEmpty(t, b.run(context.Background(), nil, 2, nothing).Failure)
	s.baseline = func(context.Context, *tools, order) ([]float64, error) {
		return nil, bench.NotHereError{Err: errors.New("no such program")}
	}
	r = b.run(context.Background(), nil, 2, nothing)
	require.Empty(t, r.Failure)
	require.Equal(t, "no such program", r.BaselineNotHere)
	require.Len(t, r.Figures[0].Weft, 2)
}

func TestNumbersAreAtBothEnds(t *testing.T) {
	for _, size := range []int{8, 15, 16, 100} {
		message := make([]byte, size)
		putNumber(message, 77)
		require.NoError(t, expectNumber(message, 77))
		require.Error(t, expectNumber(message, 78))
		if size >= 16 {
			message[size-1]++
			require.Error(t, expectNumber(message, 77), size)
		}
	}
}

func TestProfilesAreWritten(t *testing.T) {
	built, err := newTools(context.Background())
	require.NoError(t, err)
	defer built.close()
	_, err = fabric.Choose(fabric.Preference{Providers: []string{"shm"}, Require: true})
	testenv.Need(t, "shm", err)
	folder := t.TempDir()
	for _, b := range []benchmark{pingPongBenchmark("P1", "shm", 500, 1), eagerBenchmark("P3", "shm", 500, 1), idleBenchmark("shm", 5, time.Millisecond)} {
		b.order.warmup = 1
		require.NoError(t, b.profile(context.Background(), built, folder))
		files, err := filepath.Glob(filepath.Join(folder, b.profileName()+"-*.pprof"))
		require.NoError(t, err)
		require.Len(t, files, 4, "processor and heap, of both sides")
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, []byte{0x1f, 0x8b}, content[:2], "%s is a compressed profile", file)
		}
	}
	require.Empty(t, built.profile)
}
