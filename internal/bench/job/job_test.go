package job

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/bench"
	"github.com/weft-go/weft/internal/testenv"
)

// TestMain makes the tests' binary a rank, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "rank" {
		if err := Play(os.Args[2:], os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const generous = 2 * time.Minute

func ranksOf(t *testing.T, provider string, size int) Ranks {
	t.Helper()
	_, err := fabric.Choose(fabric.Preference{Providers: []string{provider}, Require: true, Logger: slog.New(slog.DiscardHandler)})
	testenv.Need(t, provider, err)
	return Ranks{Command: []string{os.Args[0], "rank"}, Folder: t.TempDir(), Provider: provider, Size: size, Time: time.Millisecond, Limit: generous}
}

func collectives(bytes, calls int) []Case {
	var cases []Case
	for _, kind := range schedule.Collectives() {
		c := Case{Work: kind.String(), Bytes: bytes, Calls: calls}
		if kind == schedule.CollectiveBarrier {
			c.Bytes = 0
		}
		cases = append(cases, c)
	}
	return cases
}

// The ranks look at what each collective gives them, so what is timed is the right thing.
func TestRanksMeasure(t *testing.T) {
	r := ranksOf(t, "tcp", 3)
	cases := collectives(400, 0)
	for _, kind := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(kind) {
			c := Case{Work: kind.String(), Algorithm: a, Calls: 4, Bytes: 1000}
			if kind == schedule.CollectiveBarrier {
				c.Bytes = 0
			}
			cases = append(cases, c)
		}
	}
	for _, work := range []string{PingPong, Combine, Copy, Empty, Stream} {
		cases = append(cases, Case{Work: work, Bytes: 64, Calls: 7})
	}
	for _, c := range collectives(100_000, 2) {
		c.Arena = true
		cases = append(cases, c)
	}
	for _, c := range append(collectives(400, 3), Case{Work: PingPong, Bytes: 64, Calls: 7}) {
		c.Pair = true
		cases = append(cases, c)
	}
	samples, err := r.Measure(context.Background(), cases)
	require.NoError(t, err)
	for i, s := range samples {
		require.Positive(t, s.Mean, cases[i])
		require.Positive(t, s.Typical, cases[i])
		if cases[i].Calls > 0 {
			require.Equal(t, cases[i].Calls, s.Operations)
		} else {
			// However long one call takes.
			require.GreaterOrEqual(t, s.Operations, leastCalls)
		}
	}
}

// What the provider does not do is told case by case, and the others are measured.
func TestProviderIsMeasured(t *testing.T) {
	offered := func(provider string, cases []Case) ([]bench.Sample, []string) {
		for i := range cases {
			cases[i].Algorithm = schedule.Provider
		}
		samples, why, err := ranksOf(t, provider, 3).MeasureOffered(context.Background(), cases)
		require.NoError(t, err)
		require.Len(t, samples, len(cases))
		require.Len(t, why, len(cases))
		return samples, why
	}
	samples, why := offered("shm", collectives(400, 3))
	for i := range samples {
		require.Zero(t, samples[i])
		require.Contains(t, why[i], "shm does no such")
	}
	samples, why = offered("tcp", collectives(400, 3))
	done := 0
	for i := range samples {
		require.Equal(t, why[i] == "", samples[i].Operations == 3, "%+v %q", samples[i], why[i])
		if why[i] == "" {
			done++
		}
	}
	require.Positive(t, done)
}

func TestOpenMPIMeasures(t *testing.T) {
	testenv.Need(t, "openmpi", MissingMPI())
	m := OpenMPI{Folder: t.TempDir(), Size: 3, Time: time.Millisecond, Limit: generous}
	samples, err := m.Measure(context.Background(), append(collectives(400, 0), collectives(4, 10)[1:4]...))
	require.NoError(t, err)
	for _, s := range samples {
		require.GreaterOrEqual(t, s.Operations, leastCalls)
	}
	s, err := m.PingPong(context.Background(), 1, 10, 8)
	require.NoError(t, err)
	require.Positive(t, s.Typical)
	// It is built once, and says what it does not have.
	_, err = m.Measure(context.Background(), []Case{{Work: "bcast", Algorithm: schedule.Tree, Bytes: 4}})
	require.ErrorContains(t, err, "the algorithm is Open MPI's choice")
}

func TestNoOpenMPI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := OpenMPI{Folder: t.TempDir(), Size: 2}.Measure(context.Background(), collectives(4, 1))
	var missing bench.NotHereError
	require.ErrorAs(t, err, &missing)
	require.ErrorContains(t, err, "mpicc")
}

// The first rank that fails ends the job, and says why; and so does the time.
func TestJobFails(t *testing.T) {
	r := ranksOf(t, "tcp", 2)
	_, err := r.Measure(context.Background(), []Case{{Work: "allsum", Bytes: 4}})
	var failed *RankError
	require.ErrorAs(t, err, &failed)
	require.Contains(t, failed.Said, `no work "allsum"`)

	r.Limit = time.Millisecond
	_, err = r.Measure(context.Background(), collectives(4, 1))
	require.Equal(t, &TimeoutError{r.Limit}, err)

	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	r.Limit = generous
	_, err = r.Measure(ctx, collectives(4, 1))
	require.ErrorIs(t, err, why)
}

func TestCases(t *testing.T) {
	for _, c := range append(collectives(8, 9), Case{Work: "reduce", Algorithm: schedule.Binomial, Bytes: 1 << 20, Arena: true}, Case{Work: PingPong, Pair: true}, Case{Work: Copy, Arena: true, Pair: true}) {
		got, err := parseCase(c.String())
		require.NoError(t, err)
		require.Equal(t, c, got)
		require.GreaterOrEqual(t, c.Memory(8), 8*c.Bytes)
	}
	for _, text := range []string{
		"", "bcast", "bcast/tree/8", "bcast/oak/8/0", "bcast/tree/7/0", "bcast/tree/-8/0", "bcast/tree/8/x", "bcast/tree/8/-1",
	} {
		_, err := parseCase(text)
		require.ErrorContains(t, err, "case ", text)
	}
	require.Error(t, Play(strings.Fields("tcp folder 0 2 1000"), nil))
	require.Error(t, Play(strings.Fields("tcp folder 0 two 1000 barrier/default/0/1"), nil))
	require.Error(t, Play(strings.Fields("tcp folder 0 2 1000 barrier"), nil))
}

func TestSamples(t *testing.T) {
	samples, err := parseSamples("0.5 0.25 10\n1 2 3\n", 2)
	require.NoError(t, err)
	require.Equal(t, []bench.Sample{{Mean: 0.5, Typical: 0.25, Operations: 10}, {Mean: 1, Typical: 2, Operations: 3}}, samples)
	for _, text := range []string{"", "1 2 3\n1 2 3", "1 2", "0 1 1", "1 -1 1", "1 1 0", "NaN 1 1", "x 1 1"} {
		_, err := parseSamples(text, 1)
		require.Error(t, err, text)
	}
}
