package efa

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/internal/testenv"
)

// dying are operations of every kind that wait for a peer.
type dying struct {
	conns []*Conn
	ends  map[string]chan error
	// delivered has three messages that nobody has read.
	delivered *Conn
	// long is the length of messages that may be in the device when the peer ends.
	long int
}

// mostAtDeath is the longest message that a provider gives back although its
// receiver, or sender, was killed, so that the engine's own behaviour can be seen:
// docs/PROVIDERS.md has what becomes of longer ones.
func (b *bed) mostAtDeath() int {
	if b.Provider == "shm" || b.Provider == "efa" {
		return 4000
	}
	return 100_000
}

// start has an operation end in its channel.
func (d *dying) start(name string, f func() error) {
	end := make(chan error, 1)
	d.ends[name] = end
	go func() { end <- f() }()
}

// dial makes the connections while the peer still answers.
func (d *dying) dial(t *testing.T, r *Reactor, address string) {
	t.Helper()
	d.ends = make(map[string]chan error)
	for range 9 {
		d.conns = append(d.conns, asked(t, r, address, staysSilent))
	}
	d.delivered = asked(t, r, address, writesThree)
	d.conns = append(d.conns, d.delivered)
	eventually(t, r, func() bool { return d.delivered.received == 3 })
	for _, c := range d.conns {
		// So that everything that follows is on its way when the peer is stopped.
		require.NoError(t, c.Flush(deadline(t), FlushRemote))
	}
}

// begin starts one operation of each kind, and returns when they wait.
func (d *dying) begin(t *testing.T, r *Reactor) {
	t.Helper()
	ctx := deadline(t)
	next := 0
	take := func() *Conn {
		next++
		return d.conns[next-1]
	}
	until := func(condition func() bool) { t.Helper(); eventually(t, r, condition) }
	// full leaves no credit; the writes before may be done already.
	full := func(c *Conn) {
		for c.TrySend(make([]byte, 100)) == nil {
			continue
		}
	}

	c := take()
	d.start("read", func() error { _, err := c.ReadMessage(ctx, make([]byte, 10)); return err })
	until(func() bool { return len(c.readers) == 1 })

	c = take()
	full(c)
	d.start("write", func() error { return c.WriteMessage(ctx, make([]byte, 5000)) })
	until(func() bool { return c.waiting.length == 1 })
	async := make(chan error, 1)
	require.NoError(t, c.WriteMessageAsync(make([]byte, 5000), func(err error) { async <- err }))
	d.ends["callback"] = async
	zero := make(chan error, 1)
	require.NoError(t, c.SendZeroCopy(make([]byte, 5000), NewCompletion(1, func(err error) { zero <- err })))
	d.ends["completion"] = zero

	c = take()
	long, err := c.Send(make([]byte, 1<<20))
	require.NoError(t, err)
	d.start("request of a long message", func() error { return long.Wait(ctx) })

	c = take()
	// Of these, the provider may say that they are done.
	d.start("long write?", func() error { return c.WriteMessage(ctx, make([]byte, min(d.long, 40_000))) })
	until(func() bool { return c.sent == 2 })

	c = take()
	require.NoError(t, c.TrySend([]byte("x")))
	d.start("flush", func() error { return c.Flush(ctx, FlushRemote) })
	flushed := make(chan error, 1)
	require.NoError(t, c.FlushAsync(FlushRemote, NewCompletion(1, func(err error) { flushed <- err })))
	d.ends["flush with completion"] = flushed
	d.start("flush of the reactor", func() error { return r.Flush(ctx, FlushRemote) })
	// One was before. Behind a message that is not confirmed they have not asked yet.
	until(func() bool { return c.stats.Flushes == 1+3 })

	c = take()
	full(c)
	ready := make(chan error, 1)
	require.NoError(t, c.OnReady(func(send func([]byte) error) Pending {
		ready <- send([]byte("x"))
		return PendingDone
	}))
	d.ends["OnReady"] = ready

	c = take()
	require.NoError(t, c.TrySend([]byte("x")))
	closing := c
	d.start("close", closing.Close)
	until(func() bool { return closing.locallyClosed })

	c = take()
	require.NoError(t, c.TrySend([]byte("x")))
	bounded := c
	d.start("close with a context", func() error { return bounded.CloseContext(ctx) })
	until(func() bool { return bounded.locallyClosed })

	c = take()
	d.start("size", func() error { _, err := c.MessageSize(ctx); return err })
	until(func() bool { return len(c.readers) == 1 })
	require.Equal(t, len(d.conns)-1, next)
}

// flood has messages of all sizes go to and fro until the peer ends.
func (d *dying) flood(t *testing.T, c *Conn) {
	t.Helper()
	d.conns = append(d.conns, c)
	var count atomic.Int64
	d.start("flood", func() error {
		for i := 0; ; i++ {
			if err := c.WriteMessage(deadline(t), message(1, i, i*7919%d.long)); err != nil {
				return err
			}
		}
	})
	d.start("flood back", func() error {
		buf := make([]byte, d.long)
		for i := 0; ; i++ {
			n, err := c.ReadMessage(deadline(t), buf)
			if err != nil {
				return err
			}
			if string(buf[:n]) != string(message(1, i, i*7919%d.long)) {
				return fmt.Errorf("message %d is another one", i)
			}
			count.Add(1)
		}
	})
	require.Eventually(t, func() bool { return count.Load() > 100 }, patience, time.Millisecond)
}

// end requires that everything has ended because the peer did, that what had come
// can be read, and that nothing is held any more.
func (d *dying) end(t *testing.T, r *Reactor, left int) {
	t.Helper()
	for name, end := range d.ends {
		select {
		case err := <-end:
			if err == nil && name == "long write?" {
				continue
			}
			require.ErrorIs(t, err, ErrPeerLost, name)
			var typed *ConnError
			require.ErrorAs(t, err, &typed, name)
			var in *InFlightError
			if errors.As(err, &in) {
				select {
				case <-in.Released:
				case <-time.After(patience):
					t.Errorf("%s: the buffer is never released", name)
				}
			}
		case <-time.After(patience):
			t.Fatalf("%s does not end", name)
		}
	}
	for i := range 3 {
		buf := make([]byte, 6000)
		n, err := d.delivered.ReadMessage(deadline(t), buf)
		require.NoError(t, err, "message %d was delivered", i)
		require.Equal(t, message(3, i, 6000), buf[:n])
	}
	_, err := d.delivered.ReadMessage(deadline(t), make([]byte, 1))
	require.ErrorIs(t, err, ErrPeerLost)
	for _, c := range d.conns {
		eventually(t, r, func() bool { return c.failure != nil })
		require.ErrorIs(t, c.WriteMessage(deadline(t), nil), failureOr(c, net.ErrClosed))
		_ = c.Close() // those that had sent something say that nobody has confirmed it
	}
	if !assert.Eventually(t, func() bool { return r.held(left) == nil }, patience, time.Millisecond) {
		require.NoError(t, r.held(left))
	}
}

// failureOr is ErrPeerLost, or for a connection that was closed before, that.
func failureOr(c *Conn, closed error) error {
	if c.closing.Load() {
		return closed
	}
	return ErrPeerLost
}

// held says what the reactor still has of connections that are over.
func (r *Reactor) held(conns int) (err error) {
	r.do(func() {
		operations := make(map[string]int)
		for _, op := range r.operations.all {
			if op.purpose == payloadReceive || op.purpose == messageSend || op.purpose == controlSend {
				if op.conn.over {
					operations[fmt.Sprintf("purpose %d, posted %v", op.purpose, op.posted)]++
				}
			}
		}
		if len(operations) > 0 || r.table.count != conns {
			err = fmt.Errorf("%v operations, %d connections", operations, r.table.count)
		}
	})
	return err
}

// witness is a connection to another peer that goes on all the time.
type witness struct {
	conn  *Conn
	count atomic.Int64
	all   sync.WaitGroup
	stop  atomic.Bool
}

func watchOver(t *testing.T, c *Conn) *witness {
	w := &witness{conn: c}
	w.all.Go(func() {
		buf := make([]byte, 10_000)
		for i := 0; !w.stop.Load(); i++ {
			want := message(9, i, i*997%10_000)
			if err := c.WriteMessage(deadline(t), want); err != nil {
				t.Errorf("the other connection: %v", err)
				return
			}
			n, err := c.ReadMessage(deadline(t), buf)
			if err != nil || string(buf[:n]) != string(want) {
				t.Errorf("the other connection: %d bytes, %v", n, err)
				return
			}
			w.count.Add(1)
		}
	})
	return w
}

// goesOn waits until the other connection has done some more.
func (w *witness) goesOn(t *testing.T) {
	t.Helper()
	until := w.count.Load() + 20
	require.Eventually(t, func() bool { return w.count.Load() >= until }, patience, time.Millisecond)
}

func (w *witness) end(t *testing.T) {
	t.Helper()
	w.stop.Store(true)
	w.all.Wait()
	require.NoError(t, w.conn.Close())
}

// eachProcess runs a test with every provider that reaches another process.
func eachProcess(t *testing.T, test func(t *testing.T, b *bed)) {
	for _, s := range settings {
		if s.Provider != "" {
			t.Run(s.Name, func(t *testing.T) { test(t, newBed(t, s)) })
		}
	}
}

// A peer that is killed ends everything that waits for it, and nothing else. It may
// have been silent before, so that nothing was under way at its end, or busy.
func TestPeerIsKilled(t *testing.T) {
	eachProcess(t, func(t *testing.T, b *bed) { testPeerIsKilled(t, b, b.mostAtDeath()) })
}

// And what a long message that is half-way holds comes back as well.
func TestPeerIsKilledInLongWrite(t *testing.T) {
	const most = 100_000
	eachProcess(t, func(t *testing.T, b *bed) {
		if b.mostAtDeath() < most {
			testenv.Need(t, "long messages back from a killed peer on "+b.Provider, errors.New("the provider does not give back a message of which the receiver was to fetch a part, until its endpoint is closed"))
		}
		testPeerIsKilled(t, b, most)
	})
}

func testPeerIsKilled(t *testing.T, b *bed, long int) {
	for _, silent := range []bool{true, false} {
		t.Run(fmt.Sprintf("silent %v", silent), func(t *testing.T) {
			givesBack(t)
			r := b.open(t, *mortal(&Config{}))
			other, victim := startProcess(t, "peer", b.Provider, "127.0.0.1:0"), startProcess(t, "peer", b.Provider, "127.0.0.1:0")
			w := watchOver(t, asked(t, r, other.hear(t, "listening"), echoes))
			address := victim.hear(t, "listening")
			d := dying{long: long}
			d.dial(t, r, address)
			if silent {
				victim.stop(t)
				d.begin(t, r)
				w.goesOn(t)
			} else {
				d.flood(t, asked(t, r, address, echoes))
			}
			if silent {
				victim.kill(t)
			} else {
				victim.killAmid(t, b.Provider)
			}
			d.end(t, r, 1)
			w.goesOn(t)

			// One that comes back in its place is another one.
			again := startProcess(t, "peer", b.Provider, address)
			require.Equal(t, address, again.hear(t, "listening"))
			back := watchOver(t, asked(t, r, address, echoes))
			back.goesOn(t)
			back.end(t)
			w.end(t)
		})
	}
}

// The same when the provider says it first, in any of its ways.
func TestPeerDiesOnTheFake(t *testing.T) {
	for name, dead := range map[string]fabrictest.DeadPeers{
		"complete": fabrictest.DeadPeersComplete, "fail": fabrictest.DeadPeersFail, "refuse": fabrictest.DeadPeersRefuse,
	} {
		t.Run(name, func(t *testing.T) {
			givesBack(t)
			n := fabrictest.NewNetwork(fabrictest.Faults{DeadPeers: dead})
			var devices []*fabrictest.Device
			var reactors []*Reactor
			var addresses []string
			for range 3 {
				d, err := n.Open(fabrictest.DeviceConfig{})
				require.NoError(t, err)
				r := openOn(t, d, *mortal(&Config{}))
				l, err := r.Listen(deadline(t), "127.0.0.1:0")
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, l.Close()) })
				go servePeers(l, servePeer)
				devices, reactors, addresses = append(devices, d), append(reactors, r), append(addresses, l.Addr().String())
			}
			r := reactors[0]
			w := watchOver(t, asked(t, r, addresses[1], echoes))
			d := dying{long: 40_000}
			d.dial(t, r, addresses[2])
			n.Partition(devices[0], devices[2])
			d.begin(t, r)
			w.goesOn(t)
			n.Kill(devices[2])
			d.end(t, r, 1)
			w.goesOn(t)
			w.end(t)
		})
	}
}

// A peer that is alive and does nothing holds a writer back at its credit, and calls
// end with their contexts; when it goes on, so does all.
func TestPeerIsStopped(t *testing.T) {
	eachProcess(t, func(t *testing.T, b *bed) {
		givesBack(t)
		r := b.open(t, *mortal(&Config{}))
		other, peer := startProcess(t, "peer", b.Provider, "127.0.0.1:0"), startProcess(t, "peer", b.Provider, "127.0.0.1:0")
		w := watchOver(t, asked(t, r, other.hear(t, "listening"), echoes))
		c := asked(t, r, peer.hear(t, "listening"), echoes)
		require.NoError(t, c.Flush(deadline(t), FlushRemote))
		peer.stop(t)
		sent := 0
		for ; ; sent++ {
			if err := c.TrySend(message(1, sent, 100)); err != nil {
				require.ErrorIs(t, err, ErrWouldBlock)
				break
			}
		}
		require.LessOrEqual(t, sent, 4)
		for name, call := range map[string]func(ctx context.Context) error{
			"read":  func(ctx context.Context) error { _, err := c.ReadMessage(ctx, make([]byte, 10)); return err },
			"write": func(ctx context.Context) error { return c.WriteMessage(ctx, make([]byte, 10)) },
			"flush": func(ctx context.Context) error { return c.Flush(ctx, FlushRemote) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			require.ErrorIs(t, call(ctx), context.DeadlineExceeded, name)
			cancel()
		}
		w.goesOn(t)
		peer.signal(t, syscall.SIGCONT)
		c.expect(t, 1, 0, sent, 100)
		require.NoError(t, c.WriteMessage(deadline(t), message(1, sent, 5000)))
		c.expect(t, 1, sent, 1, 5000)
		require.NoError(t, c.Close())
		w.end(t)
	})
}
