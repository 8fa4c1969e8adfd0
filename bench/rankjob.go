package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
)

// rankCommand, as the first argument, makes this program a rank of a job.
const rankCommand = "rank"

// What a job of ranks does.
const (
	allreduceWork = "allreduce"
	boundWork     = "bound" // measures what an Allreduce cannot be faster than
)

// rankMain runs a rank of a job, which meets in a folder, and returns the exit code of its
// process. Rank 0 says the seconds of one operation: the mean of all, and the
// median of equal parts.
func rankMain(args []string, stdout, stderr io.Writer) int {
	if err := runRank(args, stdout); err != nil {
		fmt.Fprintln(stderr, "rank:", err)
		return 1
	}
	return 0
}

func runRank(args []string, stdout io.Writer) (err error) {
	const words, numbers = 3, 5
	if len(args) != words+numbers {
		return fmt.Errorf("a rank takes %d arguments, not %d", words+numbers, len(args))
	}
	var n [numbers]int
	for i := range n {
		if n[i], err = strconv.Atoi(args[words+i]); err != nil {
			return err
		}
	}
	work, provider, folder := args[0], args[1], args[2]
	rank, size, warmup, count, length := n[0], n[1], n[2], n[3], n[4]
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
	var took sample
	switch work {
	case allreduceWork:
		took, err = timeAllreduce(ctx, world, warmup, count, length)
	case boundWork:
		took, err = timeBound(ctx, world, warmup, count, length)
	default:
		return fmt.Errorf("a rank has no work %q", work)
	}
	if err == nil && rank == 0 {
		_, err = fmt.Fprintf(stdout, "%.12f %.12f\n", took.mean, took.typical)
	}
	return err
}

// timed has f done warmup times, and then count times against the clock.
func timed(warmup, count int, f func() error) (s sample, err error) {
	for range warmup {
		if err := f(); err != nil {
			return s, err
		}
	}
	parts := min(count, 100)
	each := count / parts
	took := make([]float64, parts)
	for i := range took {
		begin := time.Now()
		for range each {
			if err := f(); err != nil {
				return s, err
			}
		}
		took[i] = time.Since(begin).Seconds() / float64(each)
		s.mean += took[i] / float64(parts)
	}
	slices.Sort(took)
	s.typical = took[parts/2]
	return s, nil
}

func timeAllreduce(ctx context.Context, world *comm.Comm, warmup, count, length int) (sample, error) {
	in, out := make([]float32, length/4), make([]float32, length/4)
	for i := range in {
		in[i] = float32(world.Rank() + i%7)
	}
	s, err := timed(warmup, count, func() error {
		return collective.Allreduce(ctx, world, in, out, operator.Sum[float32]())
	})
	size := world.Size()
	for i, v := range out {
		if want := float32(size*(size-1)/2 + size*(i%7)); v != want && err == nil {
			err = fmt.Errorf("element %d is %v, not %v", i, v, want)
		}
	}
	return s, err
}

// timeBound is the least that an Allreduce takes by the alpha-beta-gamma model: of latency
// alpha and time beta for a byte from ping-pongs of two of the ranks, and of time gamma to
// combine a byte. Every rank has to hear of all, in log2(size) rounds at least; and it
// receives, sends and combines (size-1)/size of all bytes at least.
func timeBound(ctx context.Context, world *comm.Comm, warmup, count, length int) (s sample, err error) {
	half := func(bytes int) (sample, error) {
		out, in := make([]byte, bytes), make([]byte, bytes)
		both, err := timed(warmup, count, func() error {
			switch world.Rank() {
			case 0:
				if err := world.Send(ctx, out, 1, 0); err != nil {
					return err
				}
				_, err := world.Recv(ctx, in, 1, 0)
				return err
			case 1:
				if _, err := world.Recv(ctx, in, 0, 0); err != nil {
					return err
				}
				return world.Send(ctx, out, 0, 0)
			}
			return nil
		})
		return sample{both.mean / 2, both.typical / 2}, err
	}
	latency, err := half(8)
	if err != nil {
		return s, err
	}
	rounds := math.Ceil(math.Log2(float64(world.Size())))
	s = sample{rounds * latency.mean, rounds * latency.typical}
	if length <= 8 {
		return s, nil
	}
	whole, err := half(length)
	if err != nil {
		return s, err
	}
	a, b := make([]float32, length/4), make([]float32, length/4)
	combining, err := timed(warmup, count, func() error { return operator.Sum[float32]().Apply(a, a, b) })
	if err != nil {
		return s, err
	}
	share := float64(world.Size()-1) / float64(world.Size())
	for _, v := range []struct {
		into                  *float64
		whole, alpha, combine float64
	}{
		{&s.mean, whole.mean, latency.mean, combining.mean},
		{&s.typical, whole.typical, latency.typical, combining.typical},
	} {
		*v.into += share * (2*(v.whole-v.alpha) + v.combine)
	}
	return s, nil
}

// rankJob is a measure of a job of so many ranks.
func rankJob(size int, work string) measure {
	return func(ctx context.Context, t *tools, o order) (s sample, err error) {
		folder, err := os.MkdirTemp(t.folder, "ranks-")
		if err != nil {
			return s, err
		}
		ctx, stop := context.WithTimeout(ctx, o.deadline+grace)
		defer stop()
		ranks := make([]*exec.Cmd, size)
		outputs, complaints := make([]bytes.Buffer, size), make([]complaint, size)
		for rank := range ranks {
			args := []string{
				rankCommand, work, o.provider, folder,
				strconv.Itoa(rank), strconv.Itoa(size), strconv.Itoa(o.warmup), strconv.Itoa(o.count), strconv.Itoa(o.size),
			}
			ranks[rank] = exec.CommandContext(ctx, t.weft[0], args...)
			ranks[rank].Stdout, ranks[rank].Stderr = &outputs[rank], &complaints[rank]
			if err := ranks[rank].Start(); err != nil {
				stop()
				return s, err
			}
		}
		for rank, r := range ranks {
			if waitErr := r.Wait(); waitErr != nil && err == nil {
				err = fmt.Errorf("rank %d: %w: %s", rank, waitErr, complaints[rank].String())
				stop()
			}
		}
		if err != nil {
			return s, err
		}
		return parseOpenMPI(outputs[0].String())
	}
}

// allreduceBenchmark is P9: an Allreduce of some ranks on shm, beside Open MPI's and what
// the network allows.
func allreduceBenchmark(size, bytes, count int) benchmark {
	return benchmark{
		id: "P9", provider: "shm", unit: microseconds,
		work:  fmt.Sprintf("Allreduce of %d B, %d ranks", bytes, size),
		order: order{provider: "shm", warmup: max(count/10, 1), count: count, size: bytes, deadline: 2 * time.Minute},
		weft:  rankJob(size, allreduceWork),
		baselines: []baseline{
			{"Open MPI", openMPIAllreduce(size), 1.2},
			{"alpha-beta-gamma", rankJob(size, boundWork), 1.2},
		},
	}
}
