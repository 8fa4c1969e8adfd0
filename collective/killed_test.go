package collective

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/internal/jobtest"
)

// peerTimeout is that of the engines of ranks with processes of their own.
const peerTimeout = 5 * time.Second

// death is that of a rank in calls, each of a kind, in the middle of many.
type death struct {
	Kinds    []string // each on a communicator of its own, at the same time
	Blocking bool     // the calls, and otherwise the I-forms
	Victim   int
	Bytes    int
	Seed     uint64
	// Algorithm is that of the calls; those that are not done by it are left out.
	Algorithm schedule.Algorithm
	Wordless  bool
}

// deaths are those of a run of the tests: amid calls of all kinds at once. make
// soak-collective has one for each kind alone, of each rank, with little data and with
// much.
func deaths(provider string, size int) (all []death) {
	var names, provided []string
	for _, k := range kinds {
		names = append(names, k.name)
		// Of others, tcp does none.
		if slices.Contains([]string{"barrier", "bcast", "allreduce", "scatter", "allgather"}, k.name) {
			provided = append(provided, k.name)
		}
	}
	tcp := strings.HasPrefix(provider, "tcp")
	if !soaking() {
		all = []death{
			{Kinds: names, Blocking: true, Victim: 1, Bytes: 3000, Seed: 1},
			{Kinds: names, Victim: 0, Bytes: 300_000, Seed: 2},
		}
		if tcp {
			some := []string{"bcast", "allreduce", "gather", "alltoallv"}
			const long = 32 << 20 // which is under way for longer than the victim lives
			all = append(all, death{Kinds: some, Victim: 2, Bytes: 100_000, Seed: 3, Wordless: true},
				death{Kinds: provided, Blocking: true, Victim: 2, Bytes: 3000, Seed: 4, Algorithm: schedule.Provider},
				death{Kinds: []string{"alltoall"}, Blocking: true, Victim: 1, Bytes: long, Seed: 5},
				death{Kinds: []string{"bcast"}, Blocking: true, Victim: 0, Bytes: long, Seed: 6},
				death{Kinds: []string{"allgather"}, Blocking: true, Victim: 2, Bytes: long, Seed: 7})
		}
		return all
	}
	for _, blocking := range []bool{true, false} {
		for victim := range size {
			for _, bytes := range []int{200, 3_000_000} {
				for i, name := range names {
					d := death{Kinds: names[i : i+1], Blocking: blocking, Victim: victim, Bytes: bytes, Seed: scramble(uint64(len(all)))}
					d.Wordless = os.Getenv("SOAK_WORDS") == "none"
					all = append(all, d)
					// It carries no more than 16 KiB, and calls that are refused hear of no death.
					if tcp && bytes <= 16<<10 && slices.Contains(provided, name) {
						d.Algorithm, d.Seed = schedule.Provider, scramble(uint64(len(all)))
						all = append(all, d)
					}
				}
			}
		}
	}
	return all
}

// A rank that is killed in a call ends it for the others, with an error and in time.
func TestRankIsKilled(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		sizes := []int{3}
		if soaking() {
			sizes = numbers(t, "SOAK_KILLED", sizes)
		}
		for _, size := range sizes {
			if size == 1 {
				continue // nobody is left
			}
			t.Run(fmt.Sprintf("%d ranks", size), func(t *testing.T) {
				jobs := max(1, 15/size) // at once: they spend most of their time waiting
				all := deaths(provider, size)
				took, wrong := make([]time.Duration, len(all)), make([]error, len(all))
				var running sync.WaitGroup
				free := make(chan struct{}, jobs)
				for i, d := range all {
					free <- struct{}{}
					running.Go(func() {
						took[i], wrong[i] = d.run(t, provider, size)
						<-free
					})
				}
				running.Wait()
				for i, d := range all {
					require.NoError(t, wrong[i], "%+v", d)
				}
				t.Logf("%d ranks of %s were killed; it took the others %v at most", len(all), provider, slices.Max(took))
			})
		}
	})
}

// run runs a job in which a rank dies, and returns how long the longest call took that was
// ended by that.
func (d death) run(t *testing.T, provider string, size int) (longest time.Duration, err error) {
	words, err := json.Marshal(d)
	if err != nil {
		return 0, err
	}
	errs, said := jobtest.Ranks(t, size, provider, "die", string(words))
	for rank, ended := range errs {
		if rank == d.Victim {
			if ended == nil || ended.Error() != "signal: killed" {
				err = errors.Join(err, fmt.Errorf("the victim: %v, %s", ended, said[rank]))
			}
			continue
		}
		took, unread := time.ParseDuration(strings.TrimSpace(said[rank]))
		if ended != nil || unread != nil {
			err = errors.Join(err, fmt.Errorf("rank %d: %v, %s", rank, ended, said[rank]))
		}
		longest = max(longest, took)
	}
	return longest, err
}

func playDeath(ctx context.Context, world *comm.Comm, words string) error {
	var d death
	if err := json.Unmarshal([]byte(words), &d); err != nil {
		return err
	}
	comms := make([]*comm.Comm, len(d.Kinds))
	for i := range comms {
		var err error
		if comms[i], err = world.Dup(ctx); err == nil && d.Wordless {
			err = silence(comms[i])
		}
		if err != nil {
			return err
		}
	}
	// Nobody dies before all have their communicators. It may happen before all are told so.
	if err := Barrier(ctx, world); err != nil {
		if err = fromDeath(err); err == nil {
			fmt.Println(time.Duration(0))
		}
		return err
	}
	took, errs := make([]time.Duration, len(d.Kinds)), make([]error, len(d.Kinds))
	var playing sync.WaitGroup
	for i, c := range comms {
		playing.Go(func() { took[i], errs[i] = d.play(ctx, c, i) })
	}
	playing.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Println(slices.Max(took))
	return nil
}

// fromDeath is nil for an error that the death of a rank may be to another.
func fromDeath(err error) error {
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

// play makes calls until one of them fails, or this rank is killed, and returns how long
// that one took.
func (d death) play(ctx context.Context, c *comm.Comm, i int) (took time.Duration, err error) {
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == d.Kinds[i] })]
	draw := rand.New(rand.NewPCG(d.Seed, 0))
	// One rank in two has its data in an arena.
	var l *larder
	if (c.Rank()+i)%2 == 0 {
		if l, err = newLarder(2 * d.Bytes); err != nil {
			return 0, err
		}
	}
	last := -1
	if c.Rank() == d.Victim && i == 0 {
		last = draw.IntN(4 * slots)
	}
	for call := 0; err == nil; call++ {
		s := subjects[call%len(subjects)]
		t := trial{kind: k, root: call % k.roots(c.Size()), bytes: d.Bytes, seed: d.Seed + uint64(call), larder: l, algorithm: d.Algorithm}
		if l != nil {
			l.empty()
		}
		a := s.attempt(c, t)
		begin := time.Now()
		if d.Blocking {
			if call == last {
				time.AfterFunc(time.Duration(draw.IntN(3_000_000)), func() { kill(c) })
			}
			err = a.run(ctx)
		} else {
			var q *Request
			q, err = a.start()
			if call == last {
				kill(c)
			}
			if err == nil {
				err = q.Wait(ctx)
			}
		}
		took = time.Since(begin)
		if d.Algorithm == schedule.Provider && refusedHere(err) {
			err = nil
			continue
		}
		if err == nil {
			if err := a.check(); err != nil {
				return took, fmt.Errorf("%v of %v: %w", t, s, err)
			}
		}
	}
	if err := fromDeath(err); err != nil {
		return took, fmt.Errorf("%s: %w", k.name, err)
	}
	if err := fromDeath(Barrier(ctx, c)); err != nil {
		return took, fmt.Errorf("the next call after %s: %w", k.name, err)
	}
	return took, nil
}

// kill ends this process as SIGKILL does. On shm that must not be while libfabric holds a
// lock in the memory of another: nothing helps who waits for that (docs/PROVIDERS.md).
func kill(c *comm.Comm) {
	die := func(efa.Progress) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	if strings.HasPrefix(c.Provider(), "shm") {
		c.Reactor().Do(die)
	}
	die(efa.Progress{})
}
