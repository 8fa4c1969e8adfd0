//go:build linux

package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-go/weft/bootstrap"
	"github.com/weft-go/weft/collective"
	"github.com/weft-go/weft/collective/operator"
	"github.com/weft-go/weft/comm"
)

// The tags of a rank's messages.
const (
	tagNever = iota + 1 // is not sent before the end
	tagHeld             // is not received before the end
	tagExchange
	tagNobody // is never sent
)

// held is the length of a message that waits at its sender.
const held = 64 << 10

// rank is a process that is one of a job.
type rank struct {
	number, size      int
	provider, address string
	say               func(any)
	stopping          atomic.Bool
	calls, watch      sync.WaitGroup // watch is of the call that the end of the job ends
	nobody            context.Context
	cancel            context.CancelFunc // of nobody

	mu   sync.Mutex
	lost map[int]bool
}

// playRank is a rank in the jobs that it is ordered to join, one after the other.
func playRank(arguments []string, orders <-chan string, say func(any)) error {
	before := holdsFirst(arguments[0])
	number, _ := strconv.Atoi(arguments[1])
	for order := range orders {
		word, store, _ := strings.Cut(order, " ")
		if word != "join" {
			break
		}
		r := &rank{number: number, size: 3, provider: arguments[0], address: arguments[2], say: say, lost: make(map[int]bool)}
		if err := r.play(store, orders); err != nil {
			return err
		}
	}
	say(ended("finished", "comm", "rank", 0, before.Returned(patience/4)))
	return nil
}

func (r *rank) play(store string, orders <-chan string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	job, err := bootstrap.Join(ctx, bootstrap.Options{
		Rank: r.number, Size: r.size, Address: store, Logger: quiet,
		Timeout: patience, PeerTimeout: peerTimeout, CloseTimeout: patience / 2,
	})
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	// Without the others there is none.
	joined, stop := context.WithTimeout(job.Context(), patience)
	defer stop()
	world, err := comm.Open(joined, comm.Config{
		Rank: r.number, Size: r.size, Exchange: job.Exchange, Logger: quiet,
		Address: r.address, Engine: engine(r.provider), CloseTimeout: patience / 2,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("open: %w", err), job.Close())
	}
	r.nobody, r.cancel = context.WithCancel(context.Background())
	defer r.cancel()
	if err := collective.Barrier(ctx, world); err != nil {
		return err
	}
	r.begin(job, world)
	r.say(event{What: "ready"})
	<-orders // stop
	r.stopping.Store(true)
	err = r.end(world)
	r.calls.Wait()
	r.say(ended("done", "comm", "messages", 0, err))
	r.say(ended("done", "comm", "close", 0, world.Close()))
	err = job.Close()
	r.watch.Wait()
	r.say(ended("done", "bootstrap", "close", 0, err))
	return nil
}

// call begins a call whose end is told.
func (r *rank) call(group *sync.WaitGroup, layer, name string, f func() (int, error)) {
	group.Go(func() {
		count, err := f()
		r.say(ended("ended", layer, name, count, err))
	})
}

// begin begins the calls that a loss is to end.
func (r *rank) begin(job *bootstrap.Job, world *comm.Comm) {
	r.call(&r.watch, "bootstrap", "job", func() (int, error) {
		<-job.Context().Done()
		return 0, context.Cause(job.Context())
	})
	r.call(&r.calls, "collective", "allreduce", func() (int, error) { return r.allreduce(world) })
	r.call(&r.calls, "comm", "receive from any", func() (int, error) {
		_, err := world.Recv(r.nobody, nil, comm.AnySource, tagNobody)
		return 0, err
	})
	for peer := range r.size {
		if peer == r.number {
			continue
		}
		r.call(&r.calls, "comm", fmt.Sprintf("receive from %d", peer), func() (int, error) {
			_, err := world.Recv(context.Background(), make([]byte, 1), peer, tagNever)
			r.note(peer, err)
			return 0, err
		})
		r.call(&r.calls, "comm", fmt.Sprintf("send to %d", peer), func() (int, error) {
			return 0, world.Ssend(context.Background(), fill(make([]byte, held), r.number, peer), peer, tagHeld)
		})
		r.call(&r.calls, "comm", fmt.Sprintf("exchange with %d", peer), func() (int, error) { return r.exchange(world, peer) })
	}
}

// note notes that a peer is lost.
func (r *rank) note(peer int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[peer] = r.lost[peer] || err != nil
}

// exchange sends messages to a peer and receives as many, until one of the two has had
// enough.
func (r *rank) exchange(world *comm.Comm, peer int) (count int, err error) {
	out, in := make([]byte, 0, 1<<20), make([]byte, 1<<20)
	for round := range paced {
		count = round
		size := sizes[count%len(sizes)] + 1
		out = fill(out[:size], r.number, count)
		out[0] = 0
		if r.stopping.Load() {
			out[0] = 1
		}
		status, err := world.Sendrecv(context.Background(), out, peer, tagExchange, in, peer, tagExchange)
		if err != nil {
			return count, err
		}
		want := fill(make([]byte, size), peer, count)
		if status.Length != size || !bytes.Equal(in[1:size], want[1:]) {
			return count, errNotWhole(fmt.Sprint("rank ", peer), count, status.Length)
		}
		if out[0]|in[0] != 0 {
			break
		}
	}
	return count + 1, nil
}

// allreduce has all ranks add up numbers, until one of them has had enough.
func (r *rank) allreduce(world *comm.Comm) (count int, err error) {
	for round := range paced {
		count = round
		numbers := make([]int64, []int{2, 1000, 20_000}[count%3])
		for i := range numbers {
			numbers[i] = int64((r.number + 1) * (i + count))
		}
		numbers[0] = 0
		if r.stopping.Load() {
			numbers[0] = 1
		}
		sums := make([]int64, len(numbers))
		if err := collective.Allreduce(context.Background(), world, numbers, sums, operator.Sum[int64]()); err != nil {
			return count, err
		}
		for i, sum := range sums[1:] {
			if want := int64(r.size*(r.size+1)/2) * int64(i+1+count); sum != want {
				return count, fmt.Errorf("the sum of number %d is %d, and not %d", i+1, sum, want)
			}
		}
		if sums[0] != 0 {
			break
		}
	}
	return count + 1, nil
}

// end ends the calls with those that are not lost.
func (r *rank) end(world *comm.Comm) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all error
	for peer := range r.size {
		r.mu.Lock()
		gone := peer == r.number || r.lost[peer]
		r.mu.Unlock()
		if gone {
			continue
		}
		if err := world.Send(ctx, []byte{1}, peer, tagNever); err != nil {
			all = errors.Join(all, err)
		}
		buf := make([]byte, held)
		if _, err := world.Recv(ctx, buf, peer, tagHeld); err != nil {
			all = errors.Join(all, err)
		} else if !bytes.Equal(buf, fill(make([]byte, held), peer, r.number)) {
			all = errors.Join(all, errNotWhole(fmt.Sprint("rank ", peer), 0, held))
		}
	}
	// All others end by themselves.
	r.cancel()
	return all
}
