package collective

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/jobtest"
)

func TestMain(m *testing.M) {
	jobtest.Play(playRank)
	fabrictest.Main(m)
}

// patience is far beyond what any test needs on a slow machine.
const patience = 90 * time.Second

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// each runs a test on every provider. The device in memory does not write to that of
// peers.
func each(t *testing.T, test func(t *testing.T, provider string)) {
	for _, s := range fabrictest.Settings() {
		if s.Provider == "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			b := fabrictest.NewBed(t, s)
			leaks := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
			test(t, b.Provider)
		})
	}
}

// open opens the worlds of a job, which are closed at the end of the test.
func open(t *testing.T, provider string, size int) []*comm.Comm {
	t.Helper()
	worlds := openFor(t, provider, size)
	t.Cleanup(func() {
		errs := make([]error, size)
		onAll(worlds, func(rank int, c *comm.Comm) { errs[rank] = c.Close() })
		for rank, err := range errs {
			require.NoError(t, err, "rank %d", rank)
		}
	})
	return worlds
}

// openFor is open for a test that closes them itself.
func openFor(t *testing.T, provider string, size int) []*comm.Comm {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	worlds := make([]*comm.Comm, size)
	errs := make([]error, size)
	m := jobtest.NewMeeting(size)
	ctx := deadline(t)
	var all sync.WaitGroup
	for rank := range worlds {
		all.Go(func() {
			worlds[rank], errs[rank] = comm.Open(ctx, comm.Config{
				Rank: rank, Size: size, Exchange: m.Exchange(rank), Logger: quiet,
				Engine: &efa.Config{Providers: []string{provider}, Require: true, Logger: quiet},
			})
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return worlds
}

// onAll runs f for each rank, at the same time.
func onAll(worlds []*comm.Comm, f func(rank int, c *comm.Comm)) {
	var all sync.WaitGroup
	for rank, c := range worlds {
		all.Go(func() { f(rank, c) })
	}
	all.Wait()
}

// sizes are those of the jobs that a test is for. Each rank on sockets has threads of its
// own, which share few cores here.
func sizes(provider string) []int {
	if provider == "sockets" {
		return []int{1, 3}
	}
	return []int{1, 2, 5}
}

// everywhere runs f for each rank, at the same time, and wants no error.
func everywhere(t *testing.T, worlds []*comm.Comm, f func(rank int, c *comm.Comm) error) {
	t.Helper()
	errs := make([]error, len(worlds))
	onAll(worlds, func(rank int, c *comm.Comm) { errs[rank] = f(rank, c) })
	for rank, err := range errs {
		require.NoError(t, err, "rank %d of %d", rank, len(worlds))
	}
}
