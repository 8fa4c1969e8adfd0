package efa

import (
	"cmp"
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/tagged"
)

// wrapped lets a test change what a device does.
type wrapped struct {
	fabric.Device
	refuseRegister func(n int) bool
	// refuse is what the device has no room for.
	refuse func(op *fabric.Op) bool
}

func (w *wrapped) Turn(posts []fabric.Op, completions []fabric.Completion, spins int) (int, error) {
	if w.refuse == nil {
		return w.Device.Turn(posts, completions, spins)
	}
	var kept []fabric.Op
	var places []int
	for i := range posts {
		if w.refuse(&posts[i]) {
			posts[i].Result = fabric.Refused
		} else {
			kept, places = append(kept, posts[i]), append(places, i)
		}
	}
	n, err := w.Device.Turn(kept, completions, spins)
	for i, place := range places {
		posts[place] = kept[i]
	}
	return n, err
}

func (w *wrapped) Register(buf []byte) (fabric.Registration, error) {
	if f := w.refuseRegister; f != nil && f(len(buf)) {
		return nil, &fabric.Error{Op: "fi_mr_reg", Errno: 12}
	}
	return w.Device.Register(buf)
}

// twoDevices opens devices in memory that have no faults yet.
func twoDevices(t *testing.T, config fabrictest.DeviceConfig) (n *fabrictest.Network, d1, d2 *fabrictest.Device) {
	t.Helper()
	n = fabrictest.NewNetwork(fabrictest.Faults{})
	d1, err := n.Open(config)
	require.NoError(t, err)
	d2, err = n.Open(config)
	require.NoError(t, err)
	return n, d1, d2
}

// eventually waits for a condition that belongs to the holder of the progress
// role.
func eventually(t *testing.T, r *Reactor, condition func() bool) {
	t.Helper()
	require.Eventually(t, func() (holds bool) {
		r.do(func() { holds = condition() })
		return holds
	}, patience, time.Millisecond)
}

func openOn(t *testing.T, d fabric.Device, config Config) *Reactor {
	config.Device, config.Logger = d, quiet
	config.EagerLimit = cmp.Or(config.EagerLimit, testsEagerLimit)
	r, err := Open(&config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// A write given up by its context: Released must be closed when the device
// is done.
func TestReleasedIsClosed(t *testing.T) {
	n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{})
	a, b := join(t, openOn(t, d1, Config{}), openOn(t, d2, Config{}))
	n.HoldCompletions(d1)
	ctx, cancel := context.WithCancel(deadline(t))
	ended := make(chan error, 1)
	go func() { ended <- a.WriteMessage(ctx, make([]byte, 10000)) }()
	require.NoError(t, n.AwaitHeld(deadline(t), d1, 1))
	cancel()
	var in *InFlightError
	require.ErrorAs(t, <-ended, &in)
	n.StopHolding(d1)
	got, err := b.ReadMessage(deadline(t), make([]byte, 10000))
	require.NoError(t, err)
	require.Equal(t, 10000, got)
	select {
	case <-in.Released:
	case <-time.After(patience):
		t.Error("the device is done and the buffer was never released")
	}
	closeBoth(t, a, b)
}

// A registration that fails while writing or reading ends the call.
func TestRegistrationFails(t *testing.T) {
	for _, side := range []string{"write", "read"} {
		t.Run(side, func(t *testing.T) {
			_, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{NeedsRegistration: true})
			w1, w2 := &wrapped{Device: d1}, &wrapped{Device: d2}
			a, b := join(t, openOn(t, w1, Config{}), openOn(t, w2, Config{}))
			bad := w1
			if side == "read" {
				bad = w2
			}
			bad.refuseRegister = func(n int) bool { return n == 10000 }
			ended := make(chan error, 1)
			if side == "write" {
				go func() { ended <- a.WriteMessage(context.Background(), make([]byte, 10000)) }()
			} else {
				go func() {
					_, err := b.ReadMessage(context.Background(), make([]byte, 10000))
					ended <- err
				}()
				eventually(t, b.reactor, func() bool { return len(b.readers) == 1 })
				go func() { _ = a.WriteMessage(deadline(t), make([]byte, 10000)) }()
			}
			select {
			case err := <-ended:
				var refused *fabric.Error
				require.ErrorAs(t, err, &refused)
				require.Equal(t, "fi_mr_reg", refused.Op)
			case <-time.After(patience):
				t.Error("the call never ends")
			}
			_ = a.CloseNow()
			_ = b.CloseNow()
		})
	}
}

// A reader's buffer must never become the reactor's.
func TestReadersBufferStaysTheReaders(t *testing.T) {
	each(t, func(t *testing.T, bd *bed) {
		from, to := bd.open(t, Config{}), bd.open(t, Config{})
		bad, victim := join(t, from, to)
		good, goodEnd := join(t, from, to)
		mine := make([]byte, 8192)
		ended := make(chan error, 1)
		go func() {
			_, err := victim.ReadMessage(deadline(t), mine)
			ended <- err
		}()
		eventually(t, to, func() bool { return len(victim.readers) == 1 })
		bad.sendRaw(tagged.LengthTag(bad.remoteID, 0), lengthOf(8000))
		eventually(t, to, func() bool { return len(victim.readers) == 0 })
		require.NoError(t, bad.CloseNow())
		require.ErrorIs(t, <-ended, ErrPeerLost)
		require.NoError(t, victim.Close())
		clear(mine)
		require.NoError(t, good.WriteMessage(deadline(t), message(1, 1, 8000)))
		_, err := goodEnd.MessageSize(deadline(t))
		require.NoError(t, err)
		n, err := goodEnd.ReadMessage(deadline(t), make([]byte, 8192))
		require.NoError(t, err)
		require.Equal(t, 8000, n)
		require.Equal(t, make([]byte, 8192), mine, "another connection's message is in the reader's buffer")
		closeBoth(t, good, goodEnd)
	})
}

// Length messages that are too long harm nobody else.
func TestTruncatedLengths(t *testing.T) {
	each(t, func(t *testing.T, bd *bed) {
		from, to, third := bd.open(t, Config{}), bd.open(t, Config{}), bd.open(t, Config{})
		good, goodEnd := join(t, from, to)
		bad, _ := join(t, third, to)
		for range 1100 {
			bad.sendRaw(tagged.LengthTag(bad.remoteID, 0), make([]byte, 6000))
		}
		require.Eventually(t, func() bool { return to.Stats().Dropped >= 1030 }, patience, time.Millisecond)
		require.NoError(t, good.WriteMessage(deadline(t), []byte("hello")))
		_, err := goodEnd.ReadMessage(deadline(t), make([]byte, 10))
		require.NoError(t, err)
		_ = bad.CloseNow()
		closeBoth(t, good, goodEnd)
	})
}

// A handshake that fails after the terms were agreed leaves nothing.
func TestWithdraw(t *testing.T) {
	_, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{})
	from, to := openOn(t, d1, Config{}), openOn(t, d2, Config{})
	good, goodEnd := join(t, from, to)
	c := to.newConn()
	here, there := net.Pipe()
	defer there.Close()
	c.control = &control{tcp: here}
	require.NoError(t, to.enterTable(c))
	require.NoError(t, to.agree(c, from.terms(&Conn{id: 77})))
	good.sendRaw(tagged.LengthTag(c.id, 0), lengthOf(5000))
	eventually(t, to, func() bool { return c.operations != nil && c.operations.posted })
	to.withdraw(c)
	require.Eventually(t, func() bool { return to.Stats().Connections == 1 }, patience, time.Millisecond,
		"the receive of a connection that never came about is left posted, with its place and its peer")
	closeBoth(t, good, goodEnd)
}

// CloseNow is at once, even if Close waits for the peer.
func TestCloseNowDuringClose(t *testing.T) {
	n, d1, d2 := twoDevices(t, fabrictest.DeviceConfig{})
	a, b := join(t, openOn(t, d1, Config{DrainTimeout: time.Hour}), openOn(t, d2, Config{}))
	n.Partition(d1, d2)
	require.NoError(t, a.WriteMessage(deadline(t), []byte("x")))
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	eventually(t, a.reactor, func() bool { return a.locallyClosed })
	_ = a.CloseNow()
	require.Error(t, <-closed, "nobody has confirmed the message")
	_ = b.CloseNow()
}

// More connections than the device has room for: both sides write.
func TestSlotDeadlock(t *testing.T) {
	for _, s := range []setting{
		{Name: "fake-narrow", Device: fabrictest.DeviceConfig{MaxOperations: 8}},
		{Name: "fake-64", Device: fabrictest.DeviceConfig{MaxOperations: 64}},
	} {
		t.Run(s.Name, func(t *testing.T) {
			bd := newBed(t, s)
			from, to := bd.open(t, Config{}), bd.open(t, Config{})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var all sync.WaitGroup
			n := 3 * s.Device.MaxOperations
			var conns []*Conn
			for range n {
				a, b := join(t, from, to)
				conns = append(conns, a, b)
			}
			for k, c := range conns {
				all.Go(func() {
					for i := range 20 {
						if err := c.WriteMessage(ctx, message(k, i, 5000)); err != nil {
							t.Errorf("conn %d write %d: %v", k, i, err)
							return
						}
					}
				})
				all.Go(func() {
					buf := make([]byte, 5000)
					for i := range 20 {
						if _, err := c.ReadMessage(ctx, buf); err != nil {
							t.Errorf("conn %d read %d: %v", k, i, err)
							return
						}
					}
				})
			}
			all.Wait()
			for _, c := range conns {
				_ = c.CloseNow()
			}
		})
	}
}

// One bad peer announces and does not send.
func TestHostileAnnouncements(t *testing.T) {
	each(t, testHostile)
}

func testHostile(t *testing.T, bd *bed) {
	from, to, third := bd.open(t, Config{}), bd.open(t, Config{}), bd.open(t, Config{})
	good, goodEnd := join(t, from, to)
	var bads []*Conn
	for range 20 {
		bad, _ := join(t, third, to)
		bads = append(bads, bad)
		for i := range 64 {
			bad.sendRaw(tagged.LengthTag(bad.remoteID, uint32(i)), lengthOf(5000))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { _ = goodEnd.WriteMessage(ctx, make([]byte, 5000)) }()
	_, err := good.ReadMessage(ctx, make([]byte, 5000))
	require.NoError(t, err, "an innocent connection")
	for _, bad := range bads {
		_ = bad.CloseNow()
	}
	_ = good.CloseNow()
}

// Peers that announce payloads and send none may take all the room there is for them,
// but not for long: others get it, and who was in the way hears why.
func TestWithheldPayloads(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{patience: 300 * time.Millisecond})
		good, goodEnd := join(t, from, to)
		var bad, badEnds []*Conn
		room := to.attributes.MaxOperations / 4
		for range room/mostPayloads*(1+len(to.rails)) + 1 {
			c, end := join(t, from, to)
			bad, badEnds = append(bad, c), append(badEnds, end)
			for i := range mostPayloads {
				c.sendRaw(tagged.LengthTag(c.remoteID, uint32(i)), lengthOf(5000))
			}
		}
		require.Eventually(t, func() bool {
			var full bool
			to.do(func() { full = to.payloadRoom <= 0 })
			return full
		}, patience, time.Millisecond)
		require.NoError(t, good.WriteMessageAsync(message(1, 1, 5000), func(error) {}))
		buf := make([]byte, 5000)
		_, err := goodEnd.ReadMessage(deadline(t), buf)
		require.NoError(t, err)
		require.Equal(t, message(1, 1, 5000), buf)
		ended := 0
		for _, c := range badEnds {
			to.do(func() {
				if errors.Is(c.failure, errWithheld) {
					ended++
				}
			})
		}
		require.Positive(t, ended)
		for i := range bad {
			_ = bad[i].CloseNow()
			_ = badEnds[i].CloseNow()
		}
		closeBoth(t, good, goodEnd)
	})
}

// A payload by somebody else.
func TestForeignPayload(t *testing.T) {
	bd := newBed(t, plain)
	from, to, third := bd.open(t, Config{}), bd.open(t, Config{}), bd.open(t, Config{})
	good, goodEnd := join(t, from, to)
	other, otherEnd := join(t, third, to)
	good.sendRaw(tagged.LengthTag(good.remoteID, 0), lengthOf(5000))
	other.sendRaw(tagged.PayloadTag(good.remoteID, 0), make([]byte, 5000))
	require.NoError(t, other.WriteMessage(deadline(t), []byte("x")))
	_, err := otherEnd.ReadMessage(deadline(t), make([]byte, 1))
	require.NoError(t, err)
	good.sendRaw(tagged.PayloadTag(good.remoteID, 0), message(1, 1, 5000))
	buf := make([]byte, 5000)
	_, err = goodEnd.ReadMessage(deadline(t), buf)
	require.NoError(t, err, "an innocent connection")
	require.Equal(t, message(1, 1, 5000), buf)
	_ = good.CloseNow()
	_ = other.CloseNow()
}

// A leader that is done must not hand over to a follower that is done too.
func TestHandOverToTheDone(t *testing.T) {
	bd := newBed(t, plain)
	from, to := bd.open(t, Config{}), bd.open(t, Config{})
	a1, b1 := join(t, from, to)
	a2, b2 := join(t, from, to)
	met := false
	for try := 0; !met && try < 200; try++ {
		for !to.lead() {
			runtime.Gosched()
		}
		var parked uint64
		var both sync.WaitGroup
		for k, c := range []*Conn{b1, b2} {
			both.Go(func() {
				if _, err := c.ReadMessage(deadline(t), make([]byte, 8)); err != nil {
					t.Error(err)
				}
			})
			for to.followers.count.Load() != int32(k+1) {
				runtime.Gosched()
			}
		}
		require.NoError(t, a1.WriteMessage(deadline(t), []byte("x")))
		for range 100 {
			to.step(0)
			to.followers.mu.Lock()
			h := to.followers.head
			met = h != nil && h.done.Load()
			n := to.followers.count.Load()
			parked = to.followers.total
			to.followers.mu.Unlock()
			if met || n < 2 {
				break
			}
		}
		to.release()
		if met {
			// The other one, once told, may find that the background leads, and park again.
			told := to.followers.count.Load() == 0
			again, _ := to.followers.counts()
			require.True(t, told || again > parked,
				"the role was handed to a follower that was done, and the other one was not told")
		}
		require.NoError(t, a2.WriteMessage(deadline(t), []byte("y")))
		both.Wait()
	}
	require.True(t, met, "no leader came to hand over to a follower that was done")
	closeBoth(t, a1, b1)
	closeBoth(t, a2, b2)
}

// shm: clients that come and go without a goodbye.
func TestShmLostPeers(t *testing.T) {
	bd := newBed(t, setting{Name: "shm", Provider: "shm"})
	to := bd.open(t, Config{})
	for i := range 300 {
		from := bd.open(t, Config{})
		a, b := join(t, from, to)
		require.NoError(t, a.WriteMessage(deadline(t), []byte("x")), "%d", i)
		_, err := b.ReadMessage(deadline(t), make([]byte, 1))
		require.NoError(t, err, "%d", i)
		_ = a.CloseNow()
		_ = b.Close()
		_ = from.Close()
	}
}
