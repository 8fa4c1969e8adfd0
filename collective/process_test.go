package collective

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/jobtest"
)

// playRank is a rank in a process of its own.
func playRank(p jobtest.Part) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	job, err := bootstrap.Join(ctx, bootstrap.Options{Rank: p.Rank, Size: p.Size, Address: p.Store, Logger: quiet})
	if err != nil {
		return err
	}
	world, err := comm.Open(ctx, comm.Config{
		Rank: p.Rank, Size: p.Size, Exchange: job.Exchange, Logger: quiet,
		Engine: &efa.Config{Providers: []string{p.Provider}, Require: true, Logger: quiet},
	})
	if err != nil {
		return err
	}
	// The store has done what it was for: who dies from here on is the world's to notice.
	if err := job.Close(); err != nil {
		return err
	}
	if p.Words[0] == "die" {
		err = playDeath(ctx, world, p.Words[1])
		var lost *comm.RankError
		if closeErr := world.Close(); !errors.As(closeErr, &lost) {
			err = errors.Join(err, closeErr)
		}
		return err
	}
	return errors.Join(playAll(ctx, world), world.Close())
}

// playAll takes part in calls of all lengths.
func playAll(ctx context.Context, c *comm.Comm) error {
	for call, length := range []int{1, 1000, 5000, 300_000} {
		recv := make([]int64, length)
		if err := Allreduce(ctx, c, operand(c.Rank(), call, length), recv, operator.Sum[int64]()); err != nil {
			return err
		}
		if !slices.Equal(recv, summed(c.Size(), call, length)) {
			return fmt.Errorf("the sum of %d elements is another", length)
		}
		root := call % c.Size()
		if c.Rank() == root {
			copy(recv, operand(99, call, length))
		}
		if err := Bcast(ctx, c, recv, root); err != nil {
			return err
		}
		if !slices.Equal(recv, operand(99, call, length)) {
			return fmt.Errorf("what rank %d has given to all is something else", root)
		}
		all := make([]int64, length*c.Size())
		if err := Allgather(ctx, c, operand(c.Rank(), call, length), all); err != nil {
			return err
		}
		for rank := range c.Size() {
			if !slices.Equal(all[rank*length:][:length], operand(rank, call, length)) {
				return fmt.Errorf("what rank %d has given is something else", rank)
			}
		}
	}
	return nil
}

func TestProcesses(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, size := range []int{2, 5} {
			errs, said := jobtest.Ranks(t, size, provider, "all")
			for rank, err := range errs {
				require.NoError(t, err, "rank %d: %s", rank, said[rank])
			}
		}
	})
}

// mortal are the calls in which a rank dies.
var mortal = map[string]func(c *comm.Comm, long []int64) (*Request, error){
	"barrier": func(c *comm.Comm, _ []int64) (*Request, error) { return Ibarrier(c) },
	"bcast":   func(c *comm.Comm, long []int64) (*Request, error) { return Ibcast(c, long, 1) },
	"allreduce": func(c *comm.Comm, long []int64) (*Request, error) {
		return Iallreduce(c, long, make([]int64, len(long)), operator.Sum[int64](), WithAlgorithm(schedule.Ring))
	},
	"alltoall": func(c *comm.Comm, long []int64) (*Request, error) {
		return Ialltoall(c, long, make([]int64, len(long)))
	},
}

// playDeath has rank 1 die in a call, in the middle of many.
func playDeath(ctx context.Context, c *comm.Comm, kind string) error {
	err := callOn(ctx, c, kind)
	var lost *comm.RankError
	var aborted *AbortError
	switch {
	case errors.As(err, &lost):
		// Another rank that has given up may be gone, too.
		if errors.Is(err, efa.ErrPeerLost) || errors.Is(err, comm.ErrLeft) || errors.Is(err, net.ErrClosed) {
			return nil
		}
	case errors.As(err, &aborted) && aborted.Reason == ReasonLost:
		return nil
	case err == nil:
		return errors.New("nothing came of the death of a rank")
	}
	return err
}

func callOn(ctx context.Context, c *comm.Comm, kind string) error {
	for range 3 {
		if err := Barrier(ctx, c); err != nil {
			return err
		}
	}
	long := make([]int64, 300_000)
	for range 50 {
		q, err := mortal[kind](c, long)
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if err := q.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// A rank that is killed in a call ends it for the others, with an error.
func TestRankIsKilled(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		for _, kind := range []string{"barrier", "bcast", "allreduce", "alltoall"} {
			errs, said := jobtest.Ranks(t, 3, provider, "die", kind)
			for rank, err := range errs {
				if rank == 1 {
					require.ErrorContains(t, err, "killed", said[rank])
					continue
				}
				require.NoError(t, err, "rank %d, %s: %s", rank, kind, said[rank])
			}
		}
	})
}
