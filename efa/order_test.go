package efa

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// ordering is a connection over devices whose completions the test hands out
// one by one.
type ordering struct {
	t       *testing.T
	network *fabrictest.Network
	devices [2]*fabrictest.Device // the writer's and the reader's
	from,
	to *Conn
}

func newOrdering(t *testing.T, config Config) *ordering {
	o := &ordering{t: t, network: fabrictest.NewNetwork(fabrictest.Faults{})}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", o.network.Seed())
		}
	})
	for i := range o.devices {
		// Without inject, every part of a write has a completion.
		d, err := o.network.Open(fabrictest.DeviceConfig{MaxInject: -1, MaxOperations: 8192})
		require.NoError(t, err)
		o.devices[i] = d
	}
	o.from, o.to = join(t, openOn(t, o.devices[0], config), openOn(t, o.devices[1], config))
	return o
}

// leading takes the role of a reactor for the time of f, so that the test is who
// drives it.
func leading(r *Reactor, f func()) {
	for !r.lead() {
		runtime.Gosched() // bounded by the turns of the background
	}
	defer r.release()
	f()
}

// held finds a completion that is held back, by what its operation is.
func (o *ordering) held(device int, r *Reactor, is func(op *operation, c *fabric.Completion) bool) (index int, found bool) {
	for i, c := range o.network.Held(o.devices[device]) {
		if is(r.operations.all[c.Context], &c) {
			return i, true
		}
	}
	return 0, false
}

// release hands out one completion that is held back; the caller leads.
func (o *ordering) release(device int, r *Reactor, is func(op *operation, c *fabric.Completion) bool) {
	o.t.Helper()
	// What it waits for may have to be posted, by the other side too.
	for begin := time.Now(); time.Since(begin) < patience; runtime.Gosched() {
		if i, found := o.held(device, r, is); found {
			o.network.ReleaseCompletions(o.devices[device], []int{i})
			r.step(0)
			return
		}
		r.step(0)
	}
	require.Fail(o.t, "no such completion")
}

// interleavings calls f with every order of 0 to n-1, each of which comes
// twice.
func interleavings(n int, f func(order []int)) {
	order, left := make([]int, 0, 2*n), make([]int, n)
	for i := range left {
		left[i] = 2
	}
	var extend func()
	extend = func() {
		if len(order) == 2*n {
			f(order)
			return
		}
		for i := range n {
			if left[i] > 0 {
				left[i]--
				order = append(order, i)
				extend()
				order = order[:len(order)-1]
				left[i]++
			}
		}
	}
	extend()
}

// finishedFront is the naive model: how many from the front have come twice.
func finishedFront(n int, seen []int) int {
	for i := range n {
		count := 0
		for _, s := range seen {
			if s == i {
				count++
			}
		}
		if count < 2 {
			return i
		}
	}
	return n
}

// Four writes of two parts, their completions in each of the 2520 orders, with
// the length first and with the payload first: callbacks come for exactly the
// finished front, in the order of writing.
func TestEveryOrderOfWrites(t *testing.T) {
	o := newOrdering(t, Config{EagerLimit: -1, WindowMessages: 1 << 16, WindowBytes: 1 << 40})
	ctx := deadline(t)
	r, buf := o.from.reactor, make([]byte, 100)
	callbacks := make(chan int, 4)
	for _, payloadFirst := range []bool{false, true} {
		interleavings(4, func(order []int) {
			o.network.HoldCompletions(o.devices[0])
			for i := range 4 {
				require.NoError(t, o.from.WriteMessageAsync(message(1, i, 20*i+1), func(err error) {
					if err != nil {
						t.Error(err)
					}
					callbacks <- i
				}))
			}
			for i := range 4 {
				n, err := o.to.ReadMessage(ctx, buf)
				require.NoError(t, err)
				require.True(t, bytes.Equal(message(1, i, 20*i+1), buf[:n]))
			}
			leading(r, func() {
				front := o.from.nextWrite - 4
				for k, i := range order {
					again := finishedTimes(order[:k], i) == 1
					o.release(0, r, func(op *operation, _ *fabric.Completion) bool {
						return op.purpose == messageSend && uint32(op.tag) == front+uint32(i) && (op.write != nil) == (payloadFirst != again)
					})
					want := finishedFront(4, order[:k+1])
					if o.from.writes.Len() != 4-want {
						t.Fatalf("after %v, %d writes are not released, want %d", order[:k+1], o.from.writes.Len(), 4-want)
					}
				}
			})
			o.network.StopHolding(o.devices[0])
			for i := range 4 {
				if got := <-callbacks; got != i {
					t.Fatalf("%v: callback %d where %d was due", order, got, i)
				}
			}
		})
	}
	closeBoth(t, o.from, o.to)
}

func finishedTimes(seen []int, i int) (count int) {
	for _, s := range seen {
		if s == i {
			count++
		}
	}
	return count
}

// Four messages whose lengths and payloads complete at the reader in each of
// the 2520 orders: exactly the finished front can be read, whether the reads
// come first or last.
func TestEveryOrderOfReads(t *testing.T) {
	o := newOrdering(t, Config{EagerLimit: -1, WindowMessages: 1 << 16, WindowBytes: 1 << 40})
	ctx := deadline(t)
	r := o.to.reactor
	type result struct {
		data []byte
		err  error
	}
	for _, early := range []bool{false, true} {
		results := make(chan result, 4)
		read := func() {
			for range 4 {
				buf := make([]byte, 100)
				n, err := o.to.ReadMessage(ctx, buf)
				results <- result{buf[:n], err}
			}
		}
		interleavings(4, func(order []int) {
			o.network.HoldCompletions(o.devices[1])
			// From the role itself, so that no turn comes in between.
			leading(r, func() {
				first := o.to.reads.Next()
				if early {
					go read()
					for len(o.to.readers) == 0 && ctx.Err() == nil {
						r.takeIn()
						runtime.Gosched()
					}
				}
				for i := range 4 {
					require.NoError(t, o.from.WriteMessageAsync(message(1, i, 20*i+1), nil))
				}
				for k, i := range order {
					purpose := lengthReceive
					if finishedTimes(order[:k], i) == 1 {
						purpose = payloadReceive
					}
					o.release(1, r, func(op *operation, c *fabric.Completion) bool {
						return op.purpose == purpose && uint32(c.Tag) == first+uint32(i)
					})
					want := finishedFront(4, order[:k+1])
					finished := o.to.reads.Next() - first
					for id := first + finished; ; id++ {
						if in, ok := o.to.reads.Get(id); !ok || !in.whole {
							break
						}
						finished++
					}
					if finished != uint32(want) {
						t.Fatalf("after %v, %d messages are there, want %d", order[:k+1], finished, want)
					}
				}
			})
			o.network.StopHolding(o.devices[1])
			if !early {
				read()
			}
			for i := range 4 {
				got := <-results
				require.NoError(t, got.err)
				if !bytes.Equal(message(1, i, 20*i+1), got.data) {
					t.Fatalf("%v: read %d has another message", order, i)
				}
			}
		})
	}
	closeBoth(t, o.from, o.to)
}

// A thousand writes under way, of one part and of two, whose completions come in
// a random order at the writer.
func TestRandomOrderOfWrites(t *testing.T) {
	o := newOrdering(t, Config{EagerLimit: 64, WindowMessages: 4096, WindowBytes: 1 << 30})
	ctx := deadline(t)
	rng := rand.New(rand.NewPCG(o.network.Seed(), 1))
	const count = 1000
	for range 5 {
		o.network.HoldCompletions(o.devices[0])
		callbacks := make(chan int, count)
		for i := range count {
			require.NoError(t, o.from.WriteMessageAsync(message(1, i, i%200), func(err error) {
				if err != nil {
					t.Error(err)
				}
				callbacks <- i
			}))
		}
		buf := make([]byte, 200)
		for i := range count {
			n, err := o.to.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.True(t, bytes.Equal(message(1, i, i%200), buf[:n]))
		}
		// In portions, so that what is released is not always all.
		for held := len(o.network.Held(o.devices[0])); held > 0; {
			portion := min(held, 1+rng.IntN(700))
			o.network.ReleaseCompletions(o.devices[0], rng.Perm(held)[:portion])
			held -= portion
		}
		o.network.StopHolding(o.devices[0])
		for i := range count {
			require.Equal(t, i, <-callbacks)
		}
	}
	closeBoth(t, o.from, o.to)
}

// The same at the reader, with as many at a time as it has receives.
func TestRandomOrderOfReads(t *testing.T) {
	o := newOrdering(t, Config{EagerLimit: 64, WindowMessages: 4096, WindowBytes: 1 << 30})
	ctx := deadline(t)
	rng := rand.New(rand.NewPCG(o.network.Seed(), 2))
	r := o.to.reactor
	const count = 1000
	for range 5 {
		o.network.HoldCompletions(o.devices[1])
		for i := range count {
			require.NoError(t, o.from.WriteMessageAsync(message(1, i, i%200), nil))
		}
		read := make(chan error, 1)
		go func() {
			buf := make([]byte, 200)
			for i := range count {
				n, err := o.to.ReadMessage(ctx, buf)
				if err == nil && !bytes.Equal(message(1, i, i%200), buf[:n]) {
					t.Errorf("read %d has another message", i)
				}
				if err != nil {
					read <- err
					return
				}
			}
			read <- nil
		}()
		for done := false; !done; {
			require.NoError(t, ctx.Err())
			select {
			case err := <-read:
				require.NoError(t, err)
				done = true
			default:
			}
			leading(r, func() {
				if held := len(o.network.Held(o.devices[1])); held > 0 {
					o.network.ReleaseCompletions(o.devices[1], rng.Perm(held)[:1+rng.IntN(held)])
				}
				r.step(0)
			})
			runtime.Gosched()
		}
		o.network.StopHolding(o.devices[1])
	}
	closeBoth(t, o.from, o.to)
}
