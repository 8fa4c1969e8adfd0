package job

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/internal/bench"
)

// These are as in mpi/collective.c.
const (
	// mostParts is how many parts a run is timed in, and leastCalls how many calls there are
	// at least, however long they take.
	mostParts, leastCalls, mostCalls = 100, 3, 1 << 20
	// trial is which part of its time a run has for finding out how many calls fit.
	trial = 10
	// warmTime is how long ranks meet, so many times in a row, before anything is measured: the system takes a
	// while to find a core for each.
	warmTime = 100 * time.Millisecond
	barriers = 16
	// The first long messages meet memory that nobody has used.
	messages, messageBytes = 256, 16 << 10
)

// warmUp has ranks meet for warmTime, which rank 0 decides.
func warmUp(ctx context.Context, world *comm.Comm) error {
	begin, more := time.Now(), []int64{1}
	for more[0] > 0 {
		for range barriers {
			if err := collective.Barrier(ctx, world); err != nil {
				return err
			}
		}
		if world.Rank() == 0 && time.Since(begin) >= warmTime {
			more[0] = 0
		}
		if err := collective.Bcast(ctx, world, more, 0); err != nil {
			return err
		}
	}
	if world.Size() == 1 {
		return nil
	}
	exchange := pingPong(ctx, world, make([]byte, messageBytes), make([]byte, messageBytes))
	for range messages {
		if err := exchange.call(); err != nil {
			return err
		}
	}
	return collective.Barrier(ctx, world)
}

// measure times a case, with its data in kept. The sample is rank 0's.
func measure(ctx context.Context, world *comm.Comm, c Case, kept []byte, limit time.Duration) (s bench.Sample, err error) {
	w, err := newWork(ctx, world, c, kept)
	if err != nil {
		return s, err
	}
	if w.close != nil {
		defer func() { err = errors.Join(err, w.close()) }()
	}
	if err := w.call(); err != nil {
		return s, err
	}
	if w.check != nil {
		if err := w.check(); err != nil {
			return s, err
		}
	}
	calls := c.Calls
	if calls > 0 {
		_, err = w.take(ctx, world, calls/trial)
	} else {
		calls, err = w.calibrate(ctx, world, limit)
	}
	if err != nil {
		return s, err
	}
	parts := min(calls, mostParts)
	each := calls / parts
	took := make([]float64, parts)
	for i := range took {
		elapsed, err := w.take(ctx, world, each)
		if err != nil {
			return s, err
		}
		took[i] = elapsed.Seconds() / float64(each)
	}
	if w.rooted {
		// As long as the rank that is in it for the longest.
		if err := collective.Reduce(ctx, world, took, took, operator.Max[float64](), 0); err != nil {
			return s, err
		}
	}
	for _, t := range took {
		s.Mean += t / float64(parts)
	}
	slices.Sort(took)
	s.Typical, s.Operations = took[parts/2], parts*each
	if c.Work == PingPong {
		s.Mean, s.Typical = s.Mean/2, s.Typical/2
	}
	return s, nil
}

// take is how long so many calls take this rank. Where ranks may leave a call before all
// have begun, they meet in between, which does not count.
func (w work) take(ctx context.Context, world *comm.Comm, calls int) (took time.Duration, err error) {
	begin := time.Now()
	if !w.rooted {
		for range calls {
			if err := w.call(); err != nil {
				return 0, err
			}
		}
		return time.Since(begin), nil
	}
	for range calls {
		if err := collective.Barrier(ctx, world); err != nil {
			return 0, err
		}
		entered := time.Since(begin)
		if err := w.call(); err != nil {
			return 0, err
		}
		took += time.Since(begin) - entered
	}
	return took, nil
}

// calibrate is how many calls fit into the time. Each trial has twice as many as the one
// before, until that says something, and then as many once more: what takes long may be something else. Rank 0 decides.
func (w work) calibrate(ctx context.Context, world *comm.Comm, limit time.Duration) (int, error) {
	const twice, again = 0, -1
	decided := make([]int64, 1)
	least := time.Duration(0) // of the first trial that said something
	for calls := 1; ; {
		if err := collective.Barrier(ctx, world); err != nil {
			return 0, err
		}
		begin := time.Now()
		if _, err := w.take(ctx, world, calls); err != nil {
			return 0, err
		}
		decided[0] = twice
		switch took := time.Since(begin); {
		case world.Rank() != 0 || took*trial < limit && calls < mostCalls:
			least = 0
		case least == 0:
			decided[0], least = again, took
		default:
			fit := float64(calls) * limit.Seconds() / max(min(took, least).Seconds(), 1e-9)
			decided[0] = int64(max(min(fit, mostCalls), leastCalls))
		}
		if err := collective.Bcast(ctx, world, decided, 0); err != nil {
			return 0, err
		}
		switch decided[0] {
		case twice:
			calls *= 2
		case again:
		default:
			return int(decided[0]), nil
		}
	}
}
