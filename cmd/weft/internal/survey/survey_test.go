package survey

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/internal/bench"
)

// measured is a report in which the algorithms of a collective have taken so long, by ranks
// and bytes.
func measured(kind schedule.Collective, times map[[2]int]map[schedule.Algorithm]float64) *Report {
	r := &Report{Provider: "shm", Rounds: 5}
	for _, ranks := range []int{2, 4, 8} {
		for _, size := range []int{8, 4096, 1 << 20} {
			if took, known := times[[2]int{ranks, size}]; known {
				one := &Result{Collective: kind.String(), Ranks: ranks, Bytes: size}
				for _, a := range schedule.Algorithms(kind) {
					if t, known := took[a]; known {
						one.Algorithms = append(one.Algorithms, Algorithm{Name: a.String(), Weft: Series{t, t * 0.9, t * 1.1, t * 0.8, t * 1.2}})
					}
				}
				r.Results = append(r.Results, one)
			}
		}
	}
	return r
}

// withProvider has the provider take so long.
func withProvider(r *Report, took float64, longest int) *Report {
	for _, one := range r.Results {
		if one.Bytes > longest {
			continue
		}
		a := one.algorithm(schedule.Provider.String())
		a.Weft = Series{took}
	}
	return r
}

type took = map[schedule.Algorithm]float64

func TestChoices(t *testing.T) {
	line := func(kind schedule.Collective, ranks, bytes int, a schedule.Algorithm) collective.Choice {
		return collective.Choice{Collective: kind, Ranks: ranks, Bytes: bytes, Algorithm: a}
	}
	allreduce, reduce := schedule.CollectiveAllreduce, schedule.CollectiveReduce
	const middle = 1 << 16 // of 4 KiB and 1 MiB
	for name, c := range map[string]struct {
		report *Report
		want   []collective.Choice
	}{
		"one wins everywhere": {
			measured(schedule.CollectiveBcast, map[[2]int]took{
				{2, 8}: {schedule.Tree: 1, schedule.ScatterAllgather: 2}, {4, 8}: {schedule.Tree: 1, schedule.ScatterAllgather: 1.5},
			}),
			[]collective.Choice{line(schedule.CollectiveBcast, 0, 0, schedule.Tree)},
		},
		"by size and ranks": {
			measured(allreduce, map[[2]int]took{
				{2, 8}:       {schedule.RecursiveDoubling: 1, schedule.Rabenseifner: 2},
				{2, 4096}:    {schedule.RecursiveDoubling: 4, schedule.Rabenseifner: 5},
				{2, 1 << 20}: {schedule.RecursiveDoubling: 9, schedule.Rabenseifner: 5},
				{4, 8}:       {schedule.RecursiveDoubling: 1, schedule.Rabenseifner: 2},
				{4, 4096}:    {schedule.RecursiveDoubling: 4, schedule.Rabenseifner: 5},
				{4, 1 << 20}: {schedule.RecursiveDoubling: 9, schedule.Rabenseifner: 5},
				{8, 8}:       {schedule.RecursiveDoubling: 1, schedule.Rabenseifner: 0.5},
				{8, 1 << 20}: {schedule.RecursiveDoubling: 9, schedule.Rabenseifner: 5},
			}),
			[]collective.Choice{
				line(allreduce, 0, 0, schedule.RecursiveDoubling),
				line(allreduce, 0, middle, schedule.Rabenseifner),
				line(allreduce, 8, 0, schedule.Rabenseifner),
			},
		},
		"chance changes nothing": {
			measured(reduce, map[[2]int]took{
				{2, 8}: {schedule.Binomial: 1, schedule.Tree: 2}, {2, 4096}: {schedule.Binomial: 1.02, schedule.Tree: 1},
			}),
			[]collective.Choice{line(reduce, 0, 0, schedule.Binomial)},
		},
		"the order may matter": {
			measured(allreduce, map[[2]int]took{
				{2, 8}:       {schedule.RecursiveDoubling: 1, schedule.Rabenseifner: 2, schedule.Ring: 3},
				{2, 4096}:    {schedule.RecursiveDoubling: 3, schedule.Rabenseifner: 2, schedule.Ring: 1},
				{2, 1 << 20}: {schedule.RecursiveDoubling: 3, schedule.Rabenseifner: 1, schedule.Ring: 2},
			}),
			[]collective.Choice{
				line(allreduce, 0, 0, schedule.RecursiveDoubling),
				line(allreduce, 0, 181, schedule.Rabenseifner),
				line(allreduce, 0, 181, schedule.Ring),
				line(allreduce, 0, middle, schedule.Rabenseifner),
			},
		},
		"the provider is the fastest": {
			withProvider(measured(allreduce, map[[2]int]took{{2, 8}: {schedule.Ring: 2, schedule.RecursiveDoubling: 3}}), 1, 8),
			[]collective.Choice{
				line(allreduce, 0, 0, schedule.RecursiveDoubling),
				line(allreduce, 0, 0, schedule.Provider),
				line(allreduce, 0, 9, schedule.RecursiveDoubling),
				line(allreduce, 0, 9, schedule.Ring),
			},
		},
		"the provider is the fastest of what it carries": {
			withProvider(measured(allreduce, map[[2]int]took{
				{2, 8}: {schedule.RecursiveDoubling: 3}, {2, 4096}: {schedule.RecursiveDoubling: 3}, {2, 1 << 20}: {schedule.RecursiveDoubling: 9},
			}), 1, 4096),
			[]collective.Choice{
				line(allreduce, 0, 0, schedule.RecursiveDoubling),
				line(allreduce, 0, 0, schedule.Provider),
				line(allreduce, 0, 4097, schedule.RecursiveDoubling),
			},
		},
		"there is nothing but the provider": {
			withProvider(measured(allreduce, map[[2]int]took{{2, 8}: {}}), 1, 8),
			[]collective.Choice{line(allreduce, 0, 0, schedule.Provider)},
		},
		"nothing to choose": {measured(schedule.CollectiveBarrier, map[[2]int]took{{2, 8}: {schedule.Dissemination: 1}}), nil},
	} {
		got, err := c.report.Choices()
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
		requireParsesBack(t, got)
	}
	// Whoever has them takes what was the fastest.
	r := measured(allreduce, map[[2]int]took{
		{4, 8}: {schedule.Direct: 1, schedule.Ring: 2}, {4, 4096}: {schedule.Direct: 3, schedule.Ring: 2}, {8, 8}: {schedule.Pairwise: 1, schedule.Ring: 2},
	})
	choices, err := r.Choices()
	require.NoError(t, err)
	for _, one := range []struct {
		ranks, bytes int
		want         schedule.Algorithm
	}{
		{2, 8, schedule.Direct}, {4, 8, schedule.Direct}, {4, 4096, schedule.Ring}, {7, 1 << 20, schedule.Ring}, {8, 8, schedule.Pairwise}, {99, 1 << 20, schedule.Pairwise},
	} {
		o, err := collective.Config{Choices: choices}.Options(allreduce, one.ranks, one.bytes, 4, true)
		require.NoError(t, err)
		require.Equal(t, one.want, o.Algorithm, "%+v", one)
	}
}

// requireParsesBack reads a printed table as a compiler would, and as package collective reads
// the environment.
func requireParsesBack(t *testing.T, choices []collective.Choice) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, PrintChoices(&text, choices))
	code, list, found := strings.Cut(text.String(), "\n"+collective.Variable+"=")
	require.True(t, found)

	file, err := parser.ParseFile(token.NewFileSet(), "choice.go", "package collective\n"+code, 0)
	require.NoError(t, err)
	var fromCode []collective.Choice
	known := scheduleNames(t)
	ast.Inspect(file, func(n ast.Node) bool {
		literal, is := n.(*ast.CompositeLit)
		if !is || len(literal.Elts) != 4 || literal.Type != nil {
			return true
		}
		number := func(i int) int {
			v, err := strconv.Atoi(literal.Elts[i].(*ast.BasicLit).Value)
			require.NoError(t, err)
			return v
		}
		name := func(i int) string {
			name := literal.Elts[i].(*ast.SelectorExpr).Sel.Name
			require.Contains(t, known, name)
			return known[name]
		}
		kind, err := schedule.ParseCollective(name(0))
		require.NoError(t, err)
		a, err := schedule.ParseAlgorithm(name(3))
		require.NoError(t, err)
		fromCode = append(fromCode, collective.Choice{Collective: kind, Ranks: number(1), Bytes: number(2), Algorithm: a})
		return true
	})
	require.Equal(t, choices, fromCode)

	var fromList []collective.Choice
	for _, entry := range strings.Split(strings.TrimSpace(list), ",") {
		if entry != "" {
			c, err := collective.ParseChoice(entry)
			require.NoError(t, err)
			fromList = append(fromList, c)
		}
	}
	require.Equal(t, choices, fromList)
	t.Setenv(collective.Variable, strings.TrimSpace(list))
	_, err = collective.Config{}.Options(schedule.CollectiveBcast, 2, 8, 4, true)
	require.NoError(t, err)
}

// scheduleNames has the text of each exported name of the package's algorithms and
// collectives, which are declared there.
func scheduleNames(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../collective/schedule/algorithm.go", nil, 0)
	require.NoError(t, err)
	declared := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is {
			for _, name := range spec.Names {
				declared[name.Name] = true
			}
		}
		return true
	})
	names := map[string]string{identifier(schedule.Provider.String()): schedule.Provider.String()}
	for _, kind := range schedule.Collectives() {
		names["Collective"+identifier(kind.String())] = kind.String()
		for _, a := range schedule.Algorithms(kind) {
			names[identifier(a.String())] = a.String()
		}
	}
	for name := range names {
		require.True(t, declared[name], name)
	}
	return names
}

func TestReport(t *testing.T) {
	weft := Series{10, 11, 12, 9, 10}
	r := &Report{
		Environment: bench.Environment{Processor: "a processor", Commit: "abc"}, Provider: "shm", Rounds: 5, OpenMPI: "mpirun 4",
		Network: []Probe{{Bytes: 8, Message: Series{1, 2, 3}, Combine: Series{1}, Copy: Series{1}}},
		Results: []*Result{
			{
				Collective: "bcast", Ranks: 2, Bytes: 1 << 20, Algorithm: "tree", Weft: weft,
				OpenMPI: compare(weft, Series{5, 5, 4, 3, 10}), Bound: compare(weft, Series{5, 5, 5, 5, 5}),
				Algorithms: []Algorithm{{Name: "tree", Weft: weft, Predicted: 12.9, Ratio: 1.29, Calibrating: true}, {Name: "scatter-allgather", Weft: weft, Predicted: 13.1, Ratio: 1.31}},
			},
			{Collective: "gather", Ranks: 2, Bytes: 8, Algorithm: "binomial", Failure: "no such thing"},
			{Collective: "gather", Ranks: 2, Bytes: 4096, Algorithm: "binomial", Failure: "no such thing"},
		},
	}
	r.missing("Open MPI", "why", 2)
	r.missing("Open MPI", "why", 3)
	require.Equal(t, 2.0, r.Results[0].OpenMPI.Ratio, "of medians")
	require.Equal(t, 2, r.Failures())
	var text bytes.Buffer
	require.NoError(t, r.Print(&text))
	for _, want := range []string{
		"a processor, ", "commit abc", "shm, 5 rounds, mpirun 4\n",
		"two ranks, 8: a message 2.00, to combine 1.00, to copy 1.00 us\n",
		`bcast +2 +1M +tree +10\.0 +5\.00 +2\.00 \(1\.00-3\.00\) +5\.00 +2\.00 \(1\.80-2\.40\)`,
		`gather +2 +8 +binomial +FAILED`,
		"gather on 2 ranks: no such thing\n",
		`bcast +2 +1M +tree +10\.0 +12\.9 +1\.29 +near, calibrating`, `bcast +2 +1M +scatter-allgather +10\.0 +13\.1 +1\.31 +far`,
		`1 of 2 predictions are within 30 % of what was measured; without the calls that calibrate the simulator, 0 of 1\n`,
		"not measured: Open MPI \\(5\\): why\n",
	} {
		require.Regexp(t, want, text.String())
	}
	require.Equal(t, 1, strings.Count(text.String(), "no such thing"))

	file := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, r.Write(file))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var got Report
	require.NoError(t, json.Unmarshal(content, &got))
	require.Equal(t, r, &got)

	sheet := r.Sheet()
	require.Len(t, sheet.Rows, 2)
	var labels []string
	for _, line := range sheet.Rows[0][0].Lines {
		labels = append(labels, line.Label)
		require.Equal(t, float64(1<<20), line.Points[0].X)
	}
	require.Equal(t, []string{"weft", "Open MPI", "bound", "tree", "tree, predicted", "scatter-allgather", "scatter-allgather, predicted"}, labels)
	for _, name := range []string{"a.svg", "a.png"} {
		require.NoError(t, sheet.Write(filepath.Join(t.TempDir(), name)))
	}
}

// What was put into a network comes out of what two ranks say of it.
func TestPredictions(t *testing.T) {
	same := func(v float64) Series { return Series{v, v, v, v, v} }
	network := []Probe{
		{Bytes: short, Message: same(2), Combine: same(0.01), Copy: same(0.01), Exchange: same(3.5), Empty: same(0.5), Stream: same(1.5)},
		// Copied at 10 GB/s and put at 5: one copy, for what others put is where it belongs, two
		// notices that that is ready, and three pieces more.
		{Bytes: 1e6, Message: same(202), Combine: same(200), Copy: same(100), Exchange: same(3.5 + 100 + 2 + 5 + 200)},
	}
	s := &survey{Config: Config{Provider: "shm"}, report: &Report{Network: network}}
	around := &Surroundings{Ranks: 2, Network: network}
	predicted := func(r *Result, algorithm string) float64 {
		n, err := s.estimate(around, r.Bytes)
		require.NoError(t, err)
		took, err := r.predict(n, algorithm)
		require.NoError(t, err)
		return took
	}
	require.InDelta(t, 3.5, predicted(&Result{Collective: "barrier", Ranks: 2}, "dissemination"), 0.01, "it is an exchange of nothing")
	r := &Result{Collective: "allgather", Ranks: 2, Bytes: 1e6}
	require.InDelta(t, 310.5, predicted(r, "direct"), 1)
	// Among more ranks it is as two of them find it.
	e, err := s.estimate(&Surroundings{Ranks: 4, Network: network}, 1e6)
	require.NoError(t, err)
	require.InEpsilon(t, 5e9, e.LocalBandwidth, 0.01)
	require.Equal(t, 4, e.RanksPerNode)
	require.Zero(t, e.LocalAlone)
	// One that puts alone is twice as fast: it takes 100 us, and what the call takes without data.
	network[1].Put = same(100 + 5)
	e, err = s.estimate(around, 1e6)
	require.NoError(t, err)
	require.InEpsilon(t, 1e10, e.LocalAlone, 0.05)
	r.Weft = same(600)
	bounds, err := s.bounds(r)
	require.NoError(t, err)
	require.InDelta(t, 202, bounds[0], 0.01)
	require.Len(t, bounds, 5)
	_, err = r.predict(e, "binomial")
	require.Error(t, err)
	// Nothing that was measured may be too little.
	network[1].Exchange, network[0].Stream = same(1), same(0)
	require.Positive(t, predicted(r, "ring"))
}

// Each round is predicted from what was found out in it.
func TestPredictionsOfRounds(t *testing.T) {
	slower := Series{1, 2, 1, 3, 3}
	series := func(v float64) (all Series) {
		for _, by := range slower {
			all = append(all, v*by)
		}
		return all
	}
	s := &survey{Config: Config{Provider: "shm"}}
	r := &Result{
		Collective: "barrier", Ranks: 2, Weft: series(4), Algorithms: []Algorithm{{Name: "dissemination", Weft: series(4)}},
		around: &Surroundings{Ranks: 2, Network: []Probe{{
			Bytes: short, Message: series(2), Combine: series(0.01), Copy: series(0.01),
			Exchange: series(4), Put: series(2), Empty: series(0.5), Stream: series(1.5),
		}}},
	}
	require.NoError(t, s.foretell(r))
	a := r.Algorithms[0]
	require.InDelta(t, 1, a.Ratio, 0.01)
	require.InDelta(t, 8, a.Predicted, 0.1)
	// One odd round says little, of whatever it is.
	r.around.Network[0].Exchange[0] = 100
	require.NoError(t, s.foretell(r))
	require.InDelta(t, 1, r.Algorithms[0].Ratio, 0.01)
	require.Equal(t, 5, len(r.around.Network[0].Exchange))
}

// What is found out about the network is about memory of the kind that calls use.
func TestProbesHaveTheMemoryOfCalls(t *testing.T) {
	for _, arena := range []bool{false, true} {
		p := probing{arena: arena}
		p.addNetwork([]Probe{{Bytes: short}, {Bytes: 1 << 20}}, 4, true)
		p.addCrowd(&Crowd{Exchanges: make([]Exchange, 1)})
		require.NotEmpty(t, p.cases)
		for _, c := range p.cases {
			require.Equal(t, arena, c.Arena, "%v", c)
		}
	}
}

func TestPlacements(t *testing.T) {
	require.Equal(t, [][]int{nil}, placements(2, 2))
	require.ElementsMatch(t, [][]int{{0, 1, 0, 1}, {0, 0, 1, 1}, {0, 1, 1, 0}}, placements(4, 2), "all that there are")
	require.Equal(t, [][]int{{0, 0, 0}}, placements(3, 1))
	for _, way := range placements(17, 4) {
		require.Len(t, way, 17)
		on := make([]int, 4)
		for _, core := range way {
			on[core]++
		}
		require.ElementsMatch(t, []int{4, 4, 4, 5}, on)
	}
	require.Len(t, placements(17, 4), 6)
	require.Equal(t, placements(17, 4), placements(17, 4), "a prediction is the same each time")
}

// Predictions of what the simulator was told count apart.
func TestCalibratingCalls(t *testing.T) {
	cores := runtime.NumCPU()
	crowd := max(2*cores, 4)
	s := &survey{}
	around := &Surroundings{Crowd: &Crowd{Exchanges: []Exchange{{Bytes: 4096, Direct: Series{1}, Bruck: Series{1}}}}}
	for _, one := range []struct {
		collective, algorithm string
		ranks, bytes          int
		want                  bool
	}{
		{"barrier", "dissemination", 2, 0, false},
		{"barrier", "dissemination", crowd, 0, true},
		{"bcast", "tree", 2, 4096, true},
		{"bcast", "tree", crowd, 4096, false},
		{"bcast", "scatter-allgather", 2, 4096, false},
		{"allgather", "direct", 2, 8, true},
		{"allgather", "ring", 2, 4096, true},
		{"allgather", "direct", crowd, 4096, true},
		{"allgather", "bruck", crowd, 4096, true},
		{"allgather", "direct", crowd, 8, false},
		{"allgather", "bruck", crowd, 8, true},
		{"allgather", "ring", crowd, 4096, false},
		{"alltoall", "pairwise", 2, 4096, false},
	} {
		got := s.calibrates(&Result{Collective: one.collective, Ranks: one.ranks, Bytes: one.bytes, around: around}, one.algorithm)
		require.Equal(t, one.want, got, "%+v", one)
	}
	// As calibrates has it of two ranks.
	for _, a := range schedule.Algorithms(schedule.CollectiveAllgather) {
		for rank := range 2 {
			call := schedule.Call{Collective: schedule.CollectiveAllgather, Size: 2, Length: 5}
			call.Algorithm = a
			plan, err := call.Plan(rank)
			require.NoError(t, err)
			puts := 0
			for _, step := range plan.Steps {
				if step.Action == schedule.Put {
					puts += step.Dst.Length
				}
			}
			require.Equal(t, 5, puts, "%v", a)
		}
	}
}

// Of a survey that was ended early there is what all programs have measured.
func TestInterruptedSurvey(t *testing.T) {
	s := &survey{report: &Report{
		Interrupted: true,
		Network:     []Probe{{Bytes: short, Message: Series{1, 2, 3}, Combine: Series{1, 1, 1}, Copy: Series{1, 1, 1}}},
		Results: []*Result{
			{Collective: "barrier", Ranks: 2, Weft: Series{4, 6}, OpenMPI: &Comparison{Series: Series{2, 3, 100}}},
			{Collective: "bcast", Ranks: 2, Bytes: 8, OpenMPI: &Comparison{Series: Series{1}}},
			{Collective: "gather", Ranks: 2, Bytes: 8, Failure: "no such thing"},
		},
	}}
	s.conclude()
	require.Len(t, s.report.Results, 2, "without the bcast")
	barrier := s.report.Results[0]
	require.Equal(t, &Comparison{Series: Series{2, 3}, Ratio: 2, Ratios: Series{2, 2}}, barrier.OpenMPI)
	require.Len(t, barrier.Bound.Ratios, 2)
	require.Equal(t, "no such thing", s.report.Results[1].Failure)
	var text bytes.Buffer
	require.NoError(t, s.report.Print(&text))
	require.Contains(t, text.String(), "The survey was interrupted: what is missing was not measured")
}

func TestReckon(t *testing.T) {
	c := Config{
		Collectives: schedule.Collectives(), Ranks: []int{8, 16}, Sizes: []int{8, 1 << 20},
		Progress: func(steps, done int, what string) {
			require.Less(t, done, steps)
			require.NotEmpty(t, what)
		},
	}
	r, err := Reckon(context.Background(), c, "efa", "")
	require.NoError(t, err)
	require.Len(t, r.Results, 2+8*4)
	for _, one := range r.Results {
		require.NotEmpty(t, one.Algorithms)
		for _, a := range one.Algorithms {
			require.Positive(t, a.Predicted, fmt.Sprintf("%+v", one))
		}
	}
	var text bytes.Buffer
	require.NoError(t, r.Print(&text))
	require.Contains(t, text.String(), "reckoned for efa; nothing of this was measured")
	require.Regexp(t, `barrier +8 +0 +dissemination +[0-9.]+ +1\.00 +taken`, text.String())
	_, err = Reckon(context.Background(), c, "moon", "")
	require.ErrorContains(t, err, `"moon"`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Reckon(ctx, c, "efa", "")
	require.ErrorIs(t, err, context.Canceled)
}

// What is taken for many ranks is not much worse than the best that the simulator knows.
func TestManyRanksAreChosenFor(t *testing.T) {
	c := Config{
		Collectives: []schedule.Collective{
			schedule.CollectiveBcast, schedule.CollectiveReduce, schedule.CollectiveAllreduce,
			schedule.CollectiveAllgather, schedule.CollectiveReduceScatter, schedule.CollectiveAlltoall,
		},
		Ranks: []int{64, 1024}, Sizes: []int{8, 512, 2048, 4096, 64 << 10, 256 << 10, 1 << 20},
	}
	r, err := Reckon(context.Background(), c, "efa", "")
	require.NoError(t, err)
	for _, one := range r.Results {
		best, taken := math.Inf(1), 0.0
		for _, a := range one.Algorithms {
			best = min(best, a.Predicted)
			if a.Name == one.Algorithm {
				taken = a.Predicted
			}
		}
		require.Positive(t, taken)
		require.Less(t, taken, 1.3*best, "%s of %d bytes on %d ranks by %s", one.Collective, one.Bytes, one.Ranks, one.Algorithm)
	}
}

// Calls of which the pieces would be too many are cut into fewer.
func TestReckonLong(t *testing.T) {
	c := Config{Collectives: []schedule.Collective{schedule.CollectiveGather}, Ranks: []int{16384}, Sizes: []int{16 << 20}}
	r, err := Reckon(context.Background(), c, "efa", "")
	require.NoError(t, err)
	for _, a := range r.Results[0].Algorithms {
		require.Positive(t, a.Predicted, a.Name)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int{"8": 8, "4K": 4096, "1M": 1 << 20, "1G": 1 << 30, "12": 12, "3K": 3072} {
		got, err := ParseSize(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, sizeName(got))
	}
	for _, text := range []string{"", "0", "-4", "7", "K", "2G", "4k", "4KB", "99999999999G", "1.5K"} {
		_, err := ParseSize(text)
		require.Error(t, err, text)
	}
	c := Config{Collectives: schedule.Collectives(), Ranks: []int{4}, Sizes: []int{1 << 20, 64 << 20}, Memory: 1 << 30}
	results, ignored, err := c.newResults()
	require.NoError(t, err)
	require.Len(t, ignored, 5, "%v", ignored)
	require.Len(t, results, 1+8*2-5)

	// What fits nowhere is told before anything is measured.
	c = Config{Collectives: []schedule.Collective{schedule.CollectiveAlltoall}, Ranks: []int{256}, Sizes: []int{1 << 30}, Memory: 1 << 30}
	_, err = Run(context.Background(), c)
	require.Equal(t, &MemoryError{1 << 30}, err)
	c = Config{Collectives: []schedule.Collective{schedule.CollectiveBcast}, Ranks: []int{schedule.MaxSize}, Sizes: []int{1 << 30}}
	_, err = Reckon(context.Background(), c, "efa", "")
	require.ErrorContains(t, err, "bcast of 1G on 65536 ranks: schedule: length 268435456, want 0 to 134217728")
}
