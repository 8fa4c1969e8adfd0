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
		o, err := collective.Config{Choices: choices}.Options(allreduce, one.ranks, one.bytes, 4, true, false)
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
	_, err = collective.Config{}.Options(schedule.CollectiveBcast, 2, 8, 4, true, false)
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
