package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/bench"
)

// profileVariable tells a rank Ranks.Profile.
const profileVariable = "WEFT_BENCH_PROFILE"

// profile writes to a file until stop.
func profile(name string) (stop func(), err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// notOffered begins the line of a case that the provider does not do.
const notOffered = "- "

// Play is a rank of a job that meets in a folder. Rank 0 prints a line for each case: the
// seconds of one call, the mean of all and the median of equal parts, and how many calls
// there were, or why the provider does not do it. The arguments are those that Ranks gives: provider, folder, rank, size,
// microseconds for a case, and the cases.
func Play(args []string, stdout io.Writer) (err error) {
	const words, numbers = 2, 3
	if len(args) <= words+numbers {
		return fmt.Errorf("a rank takes more than %d arguments, not %d", words+numbers, len(args))
	}
	var n [numbers]int
	for i := range n {
		if n[i], err = strconv.Atoi(args[words+i]); err != nil {
			return err
		}
	}
	provider, folder, rank, size, limit := args[0], args[1], n[0], n[1], time.Duration(n[2])*time.Microsecond
	var cases []Case
	for _, text := range args[words+numbers:] {
		c, err := parseCase(text)
		if err != nil {
			return err
		}
		cases = append(cases, c)
	}
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	job, err := bootstrap.Join(ctx, bootstrap.Options{Rank: rank, Size: size, Address: "file://" + folder, Logger: quiet})
	if err != nil {
		return err
	}
	world, err := comm.Open(ctx, comm.Config{
		Rank: rank, Size: size, Exchange: job.Exchange, Logger: quiet,
		Engine: &efa.Config{Providers: []string{provider}, Require: true, Logger: quiet},
	})
	if err != nil {
		return err
	}
	// The store has done what it was for. Without a world, the end of this process tells
	// the other ranks.
	if err := job.Close(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	if prefix := os.Getenv(profileVariable); prefix != "" {
		stop, err := profile(fmt.Sprintf("%s-rank%d.cpu.pprof", prefix, rank))
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := warmUp(ctx, world); err != nil {
		return err
	}
	kept := keep(cases, size)
	var pair *comm.Comm
	for _, c := range cases {
		if c.Pair && pair == nil {
			if pair, err = pairOf(ctx, world); err != nil {
				return err
			}
		}
		s, err := measureBy(ctx, world, pair, c, kept, limit)
		var argument *collective.ArgumentError
		if c.Algorithm == schedule.Provider && errors.As(err, &argument) {
			// No rank has begun anything.
			if rank == 0 {
				if _, err := fmt.Fprintln(stdout, notOffered+strings.Join(strings.Fields(argument.Error()), " ")); err != nil {
					return err
				}
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("%v: %w", c, err)
		}
		if rank == 0 {
			if _, err := fmt.Fprintf(stdout, "%.12f %.12f %d\n", s.Mean, s.Typical, s.Operations); err != nil {
				return err
			}
		}
	}
	return nil
}

// pairOf is a communicator of ranks 0 and 1; the others have one of theirs.
func pairOf(ctx context.Context, world *comm.Comm) (*comm.Comm, error) {
	color := 0
	if world.Rank() > 1 {
		color = 1
	}
	return world.Split(ctx, color, world.Rank())
}

// measureBy is measure by all ranks, or by the pair while the others wait for it.
func measureBy(ctx context.Context, world, pair *comm.Comm, c Case, kept []byte, limit time.Duration) (s bench.Sample, err error) {
	if !c.Pair {
		return measure(ctx, world, c, kept, limit)
	}
	if world.Rank() <= 1 {
		if s, err = measure(ctx, pair, c, kept, limit); err != nil {
			return s, err
		}
	}
	return s, collective.Barrier(ctx, world)
}
