package bootstrap

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	playRank()
	goleak.VerifyTestMain(m)
}

// patience is far beyond what any test needs on a slow machine.
const patience = time.Minute

var quiet = slog.New(slog.DiscardHandler)

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// freeAddress is one where rank 0 can listen.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "tcp://" + l.Addr().String()
}

// each calls a function for each rank, at the same time.
func each(size int, f func(rank int)) {
	var ranks sync.WaitGroup
	for rank := range size {
		ranks.Go(func() { f(rank) })
	}
	ranks.Wait()
}

// optionsOf are those of one rank in a test.
func optionsOf(rank, size int, address string) Options {
	return Options{Rank: rank, Size: size, Address: address, Logger: quiet, Timeout: patience, CloseTimeout: 20 * time.Second, Getenv: func(string) string { return "" }}
}

// joinAll joins all ranks of a job, with what change makes of the options. The jobs
// are closed when the test is over.
func joinAll(t *testing.T, size int, address string, change func(o *Options)) []*Job {
	t.Helper()
	jobs := make([]*Job, size)
	each(size, func(rank int) {
		o := optionsOf(rank, size, address)
		if change != nil {
			change(&o)
		}
		var err error
		if jobs[rank], err = Join(t.Context(), o); err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	})
	t.Cleanup(func() { closeAll(t, jobs) })
	if t.Failed() {
		t.FailNow()
	}
	return jobs
}

func closeAll(t *testing.T, jobs []*Job) {
	each(len(jobs), func(rank int) {
		if jobs[rank] == nil {
			return
		}
		if err := jobs[rank].Close(); err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	})
}

// kinds are the stores that jobs are tested with: an address for each.
func kinds(t *testing.T, test func(t *testing.T, address func(t *testing.T) string)) {
	t.Run("tcp", func(t *testing.T) { test(t, func(t *testing.T) string { return freeAddress(t) }) })
	t.Run("folder", func(t *testing.T) { test(t, func(t *testing.T) string { return "file://" + t.TempDir() }) })
}
