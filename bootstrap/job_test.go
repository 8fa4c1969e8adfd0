package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/proof"
)

func TestJobsOfAllSizes(t *testing.T) {
	kinds(t, func(t *testing.T, address func(t *testing.T) string) {
		for size := 1; size <= 16; size++ {
			jobs := joinAll(t, size, address(t), nil)
			each(size, func(rank int) {
				for round := range 3 {
					if err := jobs[rank].Barrier(t.Context(), "barrier"); err != nil {
						t.Error(err)
					}
					// Values of all lengths, and of none.
					mine := bytes.Repeat([]byte{byte(rank)}, rank*(round+1)*100)
					all, err := jobs[rank].Exchange(t.Context(), "values", mine)
					if err != nil || len(all) != size {
						t.Errorf("%d values, %v", len(all), err)
					}
					for other, value := range all {
						if !bytes.Equal(value, bytes.Repeat([]byte{byte(other)}, other*(round+1)*100)) {
							t.Errorf("rank %d has a wrong value of rank %d", rank, other)
						}
					}
				}
			})
			require.Equal(t, LauncherOptions, jobs[0].Launcher)
		}
	})
}

// Exchanges leave no more behind than their last round, however many there are.
func TestExchangesCleanUp(t *testing.T) {
	kinds(t, func(t *testing.T, address func(t *testing.T) string) {
		jobs := joinAll(t, 3, address(t), nil)
		count := func() int {
			keys, err := jobs[0].Store.Keys(t.Context(), "")
			require.NoError(t, err)
			return len(keys)
		}
		round := func() {
			each(3, func(rank int) {
				if err := jobs[rank].Barrier(t.Context(), "again"); err != nil {
					t.Error(err)
				}
				// So that all have cleaned up.
				if err := jobs[rank].Barrier(t.Context(), "done"); err != nil {
					t.Error(err)
				}
			})
		}
		for range 3 {
			round()
		}
		before := count()
		for range 5 {
			round()
		}
		require.InDelta(t, before, count(), 5) // what the others remove of "done" is under way
	})
}

// More than one value can hold goes in parts.
func TestExchangeOfLongValues(t *testing.T) {
	jobs := joinAll(t, 3, freeAddress(t), nil)
	each(3, func(rank int) {
		mine := bytes.Repeat([]byte{byte(rank + 1)}, MaxValue)
		all, err := jobs[rank].Exchange(t.Context(), "long", mine)
		if err != nil {
			t.Error(err)
			return
		}
		for other, value := range all {
			if len(value) != MaxValue || value[0] != byte(other+1) || value[MaxValue-1] != byte(other+1) {
				t.Errorf("rank %d has a wrong value of rank %d", rank, other)
			}
		}
	})
	_, err := jobs[0].Exchange(t.Context(), "longer", make([]byte, MaxValue+1))
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	_, err = jobs[0].Exchange(t.Context(), strings.Repeat("n", MaxName+1), nil)
	require.ErrorAs(t, err, &limit)
	require.ErrorAs(t, jobs[0].Barrier(t.Context(), ""), &limit)
}

// bell is a context whose deadline passes when the test says so.
type bell struct {
	context.Context
	rung chan struct{}
}

func newBell(t *testing.T) *bell { return &bell{t.Context(), make(chan struct{})} }

func (b *bell) Done() <-chan struct{} { return b.rung }

func (b *bell) Err() error {
	select {
	case <-b.rung:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestMissingRanksAreNamed(t *testing.T) {
	kinds(t, func(t *testing.T, address func(t *testing.T) string) {
		jobs := joinAll(t, 8, address(t), nil)
		absent, late := map[int]bool{3: true, 5: true, 6: true}, newBell(t)
		each(9, func(rank int) {
			if rank == 8 {
				for _, here := range []string{"0", "1", "2", "4", "7"} {
					if _, err := jobs[3].Store.Get(t.Context(), roundKey("half way", 0, here)); err != nil {
						t.Error(err)
					}
				}
				close(late.rung)
				return
			}
			if absent[rank] {
				return
			}
			err := jobs[rank].Barrier(late, "half way")
			var missing *MissingError
			if !errors.As(err, &missing) {
				t.Errorf("rank %d: %v", rank, err)
				return
			}
			if !errors.Is(err, context.DeadlineExceeded) || fmt.Sprint(missing.Ranks) != "[3 5 6]" || missing.Size != 8 ||
				!strings.Contains(err.Error(), "ranks 3, 5 and 6 of 8 have not arrived at half way within ") {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
		// It can be tried again.
		each(8, func(rank int) {
			if err := jobs[rank].Barrier(t.Context(), "half way"); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	})
}

func TestRanksThatHaveLeftAreNamed(t *testing.T) {
	kinds(t, func(t *testing.T, address func(t *testing.T) string) {
		jobs := joinAll(t, 3, address(t), nil)
		require.NoError(t, jobs[2].Close())
		late := newBell(t)
		close(late.rung)
		err := jobs[1].Barrier(late, "the end")
		require.ErrorContains(t, err, "ranks 0 to 2 of 3 have not arrived at the end")
		require.ErrorContains(t, err, "; rank 2 has left the job")
		require.NoError(t, jobs[0].Context().Err())
	})
}

func TestRanksThatDoNotJoinAreNamed(t *testing.T) {
	t.Parallel() // most of it is waiting, long enough for the others to join
	kinds(t, func(t *testing.T, address func(t *testing.T) string) {
		at := address(t)
		each(4, func(rank int) {
			if rank == 2 {
				return
			}
			o := optionsOf(rank, 4, at)
			o.Timeout = 3 * time.Second
			if rank != 0 {
				o.Timeout = patience // these hear of it from rank 0, or not at all
			}
			ctx := t.Context()
			if rank != 0 && strings.HasPrefix(at, "file:") {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 6*time.Second)
				defer cancel()
			}
			_, err := Join(ctx, o)
			var missing *MissingError
			var loss *LostError
			switch {
			case errors.As(err, &missing) && fmt.Sprint(missing.Ranks) == "[2]" && strings.Contains(err.Error(), "rank 2 of 4 has not arrived at "+at):
			case rank != 0 && errors.As(err, &loss) && loss.Rank == 0 && strings.Contains(err.Error(), "rank 2 of 4 has not arrived"):
			default:
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	})
}

func TestNobodyServes(t *testing.T) {
	at := freeAddress(t)
	o := optionsOf(1, 2, at)
	o.Timeout = 100 * time.Millisecond
	_, err := Join(t.Context(), o)
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, []int{0}, missing.Ranks)
	require.ErrorContains(t, err, "connection refused")

	o.Address += "?serve=no"
	_, err = Join(t.Context(), o)
	require.NotErrorAs(t, err, &missing)
	require.ErrorContains(t, err, "has not answered")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestOneExchangeOfANameAtATime(t *testing.T) {
	jobs := joinAll(t, 2, freeAddress(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- jobs[1].Barrier(ctx, "name") }()
	// Its value is there, so it is under way.
	_, err := jobs[0].Store.Get(t.Context(), roundKey("name", 0, "1"))
	require.NoError(t, err)
	require.ErrorIs(t, jobs[1].Barrier(t.Context(), "name"), ErrBusy)
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
}

// Names and rounds do not get mixed up, whatever is in a name.
func TestNamesOfExchanges(t *testing.T) {
	jobs := joinAll(t, 2, freeAddress(t), nil)
	for _, name := range []string{"a", "a/0", "a/0/1", "a/1", "/", "left", "\x00 é"} {
		for round := range 2 {
			each(2, func(rank int) {
				mine := fmt.Sprint(name, round, rank)
				all, err := jobs[rank].Exchange(t.Context(), name, []byte(mine))
				if err != nil || string(all[1-rank]) != fmt.Sprint(name, round, 1-rank) {
					t.Errorf("%q: %q, %v", name, all, err)
				}
			})
		}
	}
}

// A job that is over does not stand in the way of the next one at the same address.
func TestJobAfterJob(t *testing.T) {
	kinds(t, func(t *testing.T, address func(t *testing.T) string) {
		at := address(t)
		const size, times = 3, 4
		each(size, func(rank int) {
			for i := range times {
				j, err := Join(t.Context(), optionsOf(rank, size, at))
				if err != nil {
					t.Errorf("rank %d, job %d: %v", rank, i, err)
					return
				}
				all, err := j.Exchange(t.Context(), "name", []byte(fmt.Sprint(i, rank)))
				if err != nil {
					t.Errorf("rank %d, job %d: %v", rank, i, err)
				}
				for other, value := range all {
					if string(value) != fmt.Sprint(i, other) {
						t.Errorf("rank %d, job %d: %q", rank, i, all)
					}
				}
				if err := j.Close(); err != nil {
					t.Errorf("rank %d, job %d: %v", rank, i, err)
				}
			}
		})
	})
}

// Whoever has left may say hello for the next job, while rank 0 tidies: what is being written
// then is left alone, and what is older is not.
func TestTidyLeavesTheNextJobAlone(t *testing.T) {
	parent := t.TempDir()
	older := filepath.Join(parent, "t.older.1")
	require.NoError(t, os.WriteFile(older, nil, 0o600))
	require.NoError(t, os.Chtimes(older, time.Time{}, time.Now().Add(-time.Hour)))
	j, err := Join(t.Context(), optionsOf(0, 1, "file://"+parent))
	require.NoError(t, err)
	next := filepath.Join(parent, "t.next.1")
	require.NoError(t, os.WriteFile(next, nil, 0o600))
	require.NoError(t, j.Close())
	require.NoFileExists(t, older)
	require.FileExists(t, next)
}

func TestRankTaken(t *testing.T) {
	at := freeAddress(t)
	joinAll(t, 2, at, nil)
	_, err := Join(t.Context(), optionsOf(1, 2, at))
	require.ErrorIs(t, err, ErrRankTaken)
	_, err = Join(t.Context(), optionsOf(0, 2, at))
	require.ErrorContains(t, err, "rank 0 cannot serve the store at "+at)
}

func TestOtherJobs(t *testing.T) {
	at := freeAddress(t)
	joinAll(t, 2, at, func(o *Options) { o.Job = "mine" })
	o := optionsOf(1, 3, at)
	o.Job = "mine"
	_, err := Join(t.Context(), o)
	require.ErrorIs(t, err, ErrOtherJob)
	require.ErrorContains(t, err, "it has 2 ranks, and this rank's has 3")
	o = optionsOf(1, 2, at)
	o.Job = "other"
	_, err = Join(t.Context(), o)
	require.ErrorIs(t, err, ErrOtherJob)
	require.ErrorContains(t, err, "other")
}

func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]Options{
		"Rank":         {Rank: 2, Size: 2},
		"Size":         {Size: MaxSize + 1},
		"LocalRank":    {Size: 4, LocalRank: 1},
		"Job":          {Size: 1, Job: strings.Repeat("j", mostJob+1)},
		"PeerTimeout":  {Size: 1, PeerTimeout: time.Second},
		"CloseTimeout": {Size: 1, CloseTimeout: -1},
		"Address":      {Size: 1, Address: "nowhere"},
		"Key":          {Size: 1, Address: "file:///folder", Key: make([]byte, proof.LeastKey)},
	} {
		o.Logger = quiet
		_, err := Join(t.Context(), o)
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong, field)
		require.Equal(t, field, wrong.Field)
	}
	var wrong *ConfigError
	_, err := Find(Options{Rank: 1})
	require.ErrorAs(t, err, &wrong)
	m, err := Find(Options{Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Job: "job"})
	require.NoError(t, err)
	require.Equal(t, Member{Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Job: "job", Launcher: LauncherOptions}, m)
}

// What was found is logged, and the environment is all that is needed.
func TestJoinByEnvironment(t *testing.T) {
	at := freeAddress(t)
	var log bytes.Buffer
	jobs := make([]*Job, 2)
	each(2, func(rank int) {
		o := Options{Logger: quiet, Getenv: settings(fmt.Sprintf("PMI_RANK=%d PMI_SIZE=2 WEFT_STORE=%s WEFT_STORE_KEY=0123456789abcdef", rank, at))}
		if rank == 1 {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}
		var err error
		if jobs[rank], err = Join(t.Context(), o); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { closeAll(t, jobs) })
	require.Equal(t, LauncherMPICH, jobs[1].Launcher)
	require.Equal(t, at, jobs[1].Address())
	for _, part := range []string{"level=INFO", "launcher=mpich", "rank=1", "size=2", "store=" + at} {
		require.Contains(t, log.String(), part)
	}
	require.NotContains(t, log.String(), "0123456789abcdef")
}

func TestOpen(t *testing.T) {
	failure := errors.New("cannot")
	o := optionsOf(1, 2, "")
	o.Open = func(_ context.Context, m Member) (Store, error) {
		require.Equal(t, 1, m.Rank)
		return nil, failure
	}
	_, err := Join(t.Context(), o)
	require.ErrorIs(t, err, failure)
	server, err := Serve(nil, ServerConfig{Size: 2, Logger: quiet})
	require.NoError(t, err)
	defer server.Close()
	open := func(ctx context.Context, m Member) (Store, error) {
		conn, err := server.connect()
		if err != nil {
			return nil, err
		}
		return newClient(ctx, conn, o.connection(m, nil))
	}
	jobs := joinAll(t, 2, "", func(o *Options) { o.Open = open })
	require.Equal(t, "Options.Open", jobs[1].Address())
}

func TestRanksText(t *testing.T) {
	for want, ranks := range map[string][]int{
		"rank 3":                 {3},
		"ranks 3 and 4":          {4, 3},
		"ranks 3 to 5":           {3, 4, 5},
		"ranks 0, 3 to 6 and 9":  {9, 0, 3, 4, 5, 6},
		"ranks 1, 3, 5, 7 and 9": {1, 3, 5, 7, 9},
	} {
		require.Equal(t, want, ranksText(ranks))
	}
	var odd []int
	for rank := range 1000 {
		odd = append(odd, 2*rank+1)
	}
	require.Regexp(t, `^ranks 1, 3, .*, 39 and 980 more$`, ranksText(odd))
}

func TestAfterClose(t *testing.T) {
	jobs := joinAll(t, 2, freeAddress(t), nil)
	closeAll(t, jobs)
	for _, j := range jobs {
		require.ErrorIs(t, j.Barrier(t.Context(), "name"), net.ErrClosed)
		require.ErrorIs(t, context.Cause(j.Context()), net.ErrClosed)
	}
}
