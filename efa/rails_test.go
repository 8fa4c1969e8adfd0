package efa

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
)

// railed joins two reactors that have so many devices.
func (b *bed) railed(t *testing.T, config Config, from, to int) (dialed, accepted *Conn) {
	t.Helper()
	other := config
	config.Rails, other.Rails = from, to
	return join(t, b.open(t, config), b.open(t, other))
}

// carries has messages of these sizes go both ways at once, each verified.
func carries(t *testing.T, dialed, accepted *Conn, sizes []int) {
	t.Helper()
	var all sync.WaitGroup
	run := func(sender int, from, to *Conn) {
		all.Go(func() {
			for i, size := range sizes {
				if err := from.WriteMessage(context.Background(), message(sender, i, size)); err != nil {
					t.Errorf("message %d of %d bytes: %v", i, size, err)
					return
				}
			}
		})
		all.Go(func() {
			longest := 0
			for _, size := range sizes {
				longest = max(longest, size)
			}
			buf := make([]byte, longest)
			for i, size := range sizes {
				n, err := to.ReadMessage(context.Background(), buf)
				if err != nil {
					t.Errorf("message %d of %d bytes: %v", i, size, err)
					return
				}
				if !bytes.Equal(message(sender, i, size), buf[:n]) {
					t.Errorf("message %d of %d bytes is not that one", i, size)
				}
			}
		})
	}
	run(1, dialed, accepted)
	run(2, accepted, dialed)
	all.Wait()
}

// Both sides use as many devices as both have, and what they carry is what was
// written, in order.
func TestRails(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		b.Rails = 0
		for _, c := range []struct{ from, to, both int }{{3, 3, 3}, {4, 2, 2}, {3, 1, 1}, {0, 2, 1}} {
			t.Run(fmt.Sprintf("%d and %d", c.from, c.to), func(t *testing.T) {
				givesBack(t)
				dialed, accepted := b.railed(t, Config{}, c.from, c.to)
				require.Equal(t, c.both, dialed.Rails())
				require.Equal(t, c.both, accepted.Rails())
				require.Equal(t, dialed.piece, accepted.piece)
				piece := min(dialed.piece, railPiece)
				long := 8 * piece
				sizes := []int{0, 1, 5000, piece - 1, piece, piece + 1, 2 * piece, 3*piece - 1, long, long + 1, 7, long - 1, piece, piece, piece}
				carries(t, dialed, accepted, sizes)
				for _, r := range []*Reactor{dialed.reactor, accepted.reactor} {
					stats := r.Stats()
					require.Len(t, stats.Rails, max(min(len(r.rails), 1), 0)*(1+len(r.rails)))
					var sent, received uint64
					for i, rail := range stats.Rails {
						if i < c.both && c.both > 1 {
							require.GreaterOrEqual(t, rail.SentBytes, uint64(long/c.both/2), "%+v", stats.Rails)
							require.GreaterOrEqual(t, rail.ReceivedBytes, uint64(long/c.both/2), "%+v", stats.Rails)
						} else if i > 0 {
							require.Zero(t, rail.SentBytes+rail.ReceivedBytes)
						}
						sent += rail.SentBytes
						received += rail.ReceivedBytes
					}
					if len(stats.Rails) > 0 {
						require.LessOrEqual(t, sent, stats.SentBytes)
						require.GreaterOrEqual(t, sent+uint64(len(sizes)*5000), stats.SentBytes)
						require.LessOrEqual(t, received, stats.ReceivedBytes)
						require.GreaterOrEqual(t, received+uint64(len(sizes)*5000), stats.ReceivedBytes)
					}
				}
				closeBoth(t, dialed, accepted)
				require.NoError(t, dialed.reactor.Close())
				require.NoError(t, accepted.reactor.Close())
			})
		}
	})
}

// Streams and every other way to send go over rails as well.
func TestRailsByEveryCall(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.railed(t, Config{WindowBytes: 1 << 20}, 3, 3)
		const size = 700_000
		want := func(i int) {
			t.Helper()
			accepted.expect(t, 1, i, 1, size)
		}
		buf, err := dialed.Buffer(size)
		require.NoError(t, err)
		copy(buf.Bytes(), message(1, 0, size))
		require.NoError(t, dialed.WriteBuffer(deadline(t), buf))
		want(0)
		q, err := dialed.Send(message(1, 1, size))
		require.NoError(t, err)
		want(1)
		if q != nil {
			require.NoError(t, q.Wait(deadline(t)))
		}
		done := make(chan error, 2)
		require.NoError(t, dialed.SendZeroCopy(message(1, 2, size), NewCompletion(1, func(err error) { done <- err })))
		require.NoError(t, dialed.WriteMessageAsync(message(1, 3, size), func(err error) { done <- err }))
		want(2)
		want(3)
		require.NoError(t, <-done)
		require.NoError(t, <-done)

		written := make(chan error, 1)
		content := message(2, 0, 3<<20)
		go func() {
			_, err := dialed.Stream().Write(content)
			written <- err
		}()
		into := make([]byte, len(content))
		for at := 0; at < len(into); {
			n, err := accepted.Stream().Read(into[at:])
			require.NoError(t, err)
			at += n
		}
		require.Equal(t, content, into)
		require.NoError(t, <-written)
		for i, rail := range dialed.reactor.Stats().Rails {
			require.GreaterOrEqual(t, rail.SentBytes, uint64(1<<19), "%d", i)
		}
		closeBoth(t, dialed, accepted)
	})
}

// Whatever the devices do, and however many each side has.
func TestRailsAtRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		faults := fabrictest.Faults{
			Seed:    rapid.Uint64Range(1, 1<<40).Draw(rt, "seed"),
			Reorder: rapid.SampledFrom([]float64{0, 0.3, 0.9}).Draw(rt, "reorder"),
			Refuse:  rapid.SampledFrom([]float64{0, 0.3}).Draw(rt, "refuse"),
			Delay:   rapid.IntRange(0, 5).Draw(rt, "delay"),
		}
		device := fabrictest.DeviceConfig{
			MaxMessage:        uint64(rapid.SampledFrom([]int{256, 300, 1000}).Draw(rt, "longest")),
			MaxOperations:     rapid.SampledFrom([]int{4, 8, 33, 1024}).Draw(rt, "operations"),
			NeedsRegistration: rapid.Bool().Draw(rt, "registration"),
			UnexpectedLimit:   rapid.SampledFrom([]int{0, 16}).Draw(rt, "unexpected"),
		}
		config := Config{WindowBytes: int64(rapid.SampledFrom([]int{1, 5000, 1 << 20}).Draw(rt, "window"))}
		from, to := rapid.IntRange(0, 5).Draw(rt, "from"), rapid.IntRange(0, 5).Draw(rt, "to")
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(0, 60_000)), 1, 20).Draw(rt, "sizes")
		t.Run("case", func(t *testing.T) {
			b := newBed(t, setting{Name: "fake", Faults: faults, Device: device})
			dialed, accepted := b.railed(t, config, from, to)
			carries(t, dialed, accepted, sizes)
			closeBoth(t, dialed, accepted)
		})
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// drowsy is a device that waits until there is something, however long it takes: whose
// end goes unnoticed is waited for in vain.
type drowsy struct{ fabric.Device }

func (d drowsy) Wait(time.Duration) { d.Device.Wait(time.Hour) }

// What comes on a rail ends the wait of a reactor that does nothing else.
func TestRailsEndTheWait(t *testing.T) {
	network := fabrictest.NewNetwork(fabrictest.Faults{})
	open := func() *Reactor {
		config := Config{Logger: quiet, idleCheck: time.Hour}
		for i := range 3 {
			d, err := network.Open(fabrictest.DeviceConfig{MaxMessage: 1000})
			require.NoError(t, err)
			if i == 0 {
				config.Device = drowsy{d}
			} else {
				config.RailDevices = append(config.RailDevices, drowsy{d})
			}
		}
		r, err := Open(&config)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		return r
	}
	from, to := open(), open()
	dialed, accepted := join(t, from, to)
	for i := range 50 {
		rail := to.rails[i%2].device.(drowsy).Device.(*fabrictest.Device)
		network.HoldCompletions(rail)
		written := make(chan error, 1)
		go func() { written <- dialed.WriteMessage(deadline(t), message(1, i, 9000)) }()
		read := make(chan error, 1)
		buf := make([]byte, 9000)
		go func() {
			_, err := accepted.ReadMessage(deadline(t), buf)
			read <- err
		}()
		// All pieces of the rail are there but for what is held, and nobody drives.
		require.NoError(t, network.AwaitHeld(deadline(t), rail, 1))
		network.StopHolding(rail)
		require.NoError(t, <-read)
		require.NoError(t, <-written)
		require.Equal(t, message(1, i, 9000), buf)
	}
	closeBoth(t, dialed, accepted)
}

// A side that has no rails hears nothing of those of the other: the frames are the
// same, but for the bit in the features of the one that has.
func TestRailsAreNotToldToOthers(t *testing.T) {
	b := newBed(t, setting{Name: "fake", Device: fabrictest.DeviceConfig{MaxMessage: 1000}})
	plain, other, railed := b.open(t, Config{}), b.open(t, Config{}), b.open(t, Config{Rails: 3})
	// What a handshake says, without what differs each time.
	frames := func(from, to *Reactor) [2][]string {
		t.Helper()
		said := [2][]string{}
		here, there := net.Pipe()
		dialing, accepting := &overheard{Conn: here}, &overheard{Conn: there}
		accepted := make(chan *Conn, 1)
		go func() {
			c, err := to.accept(deadline(t), newOpening(accepting), nil)
			if err != nil {
				t.Error(err)
			}
			accepted <- c
		}()
		c, err := dialOver(deadline(t), newOpening(dialing), from.config, nil, func(*terms, net.Conn) (*Reactor, error) { return from, nil })
		require.NoError(t, err)
		closeBoth(t, c, <-accepted)
		for i, o := range []*overheard{dialing, accepting} {
			said[i] = o.frames()
		}
		return said
	}
	usual := frames(plain, other)
	require.Equal(t, usual, frames(plain, railed))
	require.Equal(t, usual, frames(railed, plain))
	both := frames(railed, b.open(t, Config{Rails: 2}))
	require.NotEqual(t, usual, both)
	require.Contains(t, both[0], fmt.Sprint(frameRails))
	require.Contains(t, both[1], fmt.Sprint(frameRails))

	require.Zero(t, plain.features()&featureRails)
	require.NotZero(t, railed.features()&featureRails)
	terms := plain.terms(&Conn{id: 7})
	terms.Features |= 1<<31 | featureRails
	again, err := decodeTerms(terms.encode())
	require.NoError(t, err, "bits of later versions are no reason to refuse")
	require.Equal(t, *terms, again)
}

// overheard keeps what a side writes.
type overheard struct {
	net.Conn
	mu      sync.Mutex
	written []byte
}

func (o *overheard) Write(b []byte) (int, error) {
	o.mu.Lock()
	o.written = append(o.written, b...)
	o.mu.Unlock()
	return o.Conn.Write(b)
}

// frames are the types of the frames of the handshake, and for terms how long they
// are.
func (o *overheard) frames() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for b := o.written; len(b) >= headerSize; {
		size := int(b[6]) | int(b[7])<<8
		t := frameType(b[5])
		text := fmt.Sprint(t)
		if t == frameOffer || t == frameAnswer || t == frameReady {
			text = fmt.Sprint(t, size)
		}
		if t < frameFinish {
			all = append(all, text)
		}
		b = b[headerSize+size:]
	}
	return all
}

// A rail that dies ends the connections that use it, with an error that says which
// rail, and no other; new ones use those that are left.
func TestRailDies(t *testing.T) {
	for _, when := range []string{"idle", "in a message"} {
		t.Run(when, func(t *testing.T) {
			givesBack(t)
			b := newBed(t, setting{Name: "fake", Device: fabrictest.DeviceConfig{MaxMessage: 1000}})
			railed, peer, plain := b.open(t, Config{Rails: 3}), b.open(t, Config{Rails: 3}), b.open(t, Config{})
			dialed, accepted := join(t, railed, peer)
			good, goodEnd := join(t, railed, plain)
			dead := railed.rails[1].device.(*fabrictest.Device)
			var write *Request
			var err error
			if when == "in a message" {
				b.Network.HoldCompletions(dead)
				write, err = dialed.Send(make([]byte, 1<<20))
				require.NoError(t, err)
				require.NoError(t, b.Network.AwaitHeld(deadline(t), dead, 1))
			}
			b.Network.Kill(dead)
			ends := []error{dialed.WriteMessage(deadline(t), make([]byte, 100_000))}
			if write != nil {
				ends = append(ends, write.Wait(deadline(t)))
			}
			_, err = dialed.ReadMessage(deadline(t), nil)
			for _, err := range append(ends, err) {
				var device *DeviceError
				require.ErrorAs(t, err, &device)
				require.NotEmpty(t, device.Rail)
				require.ErrorContains(t, err, "rail "+device.Rail)
				var typed *ConnError
				require.ErrorAs(t, err, &typed)
			}
			_, err = accepted.ReadMessage(deadline(t), make([]byte, 1<<20))
			require.ErrorIs(t, err, ErrPeerLost)
			require.EqualValues(t, 1, railed.Stats().Ended.Device)

			carries(t, good, goodEnd, []int{1, 5000, 50_000})
			again, againEnd := join(t, railed, peer)
			require.Equal(t, 2, again.Rails())
			require.Equal(t, 2, againEnd.Rails())
			carries(t, again, againEnd, []int{1, 5000, 50_000})
			stats := railed.Stats().Rails
			require.Len(t, stats, 3)
			require.Positive(t, stats[1].SentBytes)

			_ = dialed.Close()
			_ = accepted.Close()
			closeBoth(t, again, againEnd)
			closeBoth(t, good, goodEnd)
			for _, r := range []*Reactor{railed, peer, plain} {
				require.NoError(t, r.Close())
			}
		})
	}
}

// A rail of which all that it is asked for fails is told apart from a lost peer.
func TestRailDiesAtThePeer(t *testing.T) {
	b := newBed(t, setting{Name: "fake", Device: fabrictest.DeviceConfig{MaxMessage: 1000}})
	from, to := b.open(t, Config{Rails: 2}), b.open(t, Config{Rails: 2})
	dialed, accepted := join(t, from, to)
	b.Network.Kill(to.rails[0].device.(*fabrictest.Device))
	err := dialed.WriteMessage(deadline(t), make([]byte, 100_000))
	for err == nil {
		err = dialed.WriteMessage(deadline(t), make([]byte, 100_000))
	}
	require.ErrorIs(t, err, ErrPeerLost)
	_, err = accepted.ReadMessage(deadline(t), make([]byte, 100_000))
	require.Error(t, err)
	_ = dialed.Close()
	_ = accepted.Close()
	// A handshake would be refused that has the rail before its own side has found it dead.
	eventually(t, to, func() bool { return to.rails[0].broken != nil })
	again, againEnd := join(t, from, to)
	carries(t, again, againEnd, []int{100_000, 3})
	closeBoth(t, again, againEnd)
}

// Connections that end in the middle of messages on all rails leave nothing: not of
// memory, nor of the rooms of the rails.
func TestEndOnRails(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		givesBack(t)
		from, to := b.open(t, Config{Rails: 3}), b.open(t, Config{Rails: 3})
		type rooms struct{ receives, sends, aheadReceives, aheadSends, inFlight, peers int }
		of := func(l *rail) rooms {
			return rooms{l.receiveRoom, l.sendRoom, l.aheadReceives, l.aheadSends, l.inFlight, len(l.peers)}
		}
		var before []rooms
		for _, r := range []*Reactor{from, to} {
			for _, l := range r.rails {
				before = append(before, of(l))
			}
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 5 {
			dialed, accepted := join(t, from, to)
			size := 2 << 20
			written, read := make(chan error, 1), make(chan error, 1)
			go func() { written <- dialed.WriteMessage(context.Background(), make([]byte, size)) }()
			go func() {
				_, err := accepted.ReadMessage(context.Background(), make([]byte, size))
				read <- err
			}()
			pieces := uint64(rng.IntN(4))
			require.Eventually(t, func() bool {
				return accepted.Stats().PiecesReceived >= pieces || len(written) > 0
			}, patience, time.Millisecond)
			require.NoError(t, accepted.CloseNow())
			for _, err := range []error{<-read, <-written} {
				var ended *ConnError
				if err != nil {
					require.ErrorAs(t, err, &ended)
				}
			}
			_ = dialed.CloseNow()
		}
		if b.Provider != "" {
			// Of what is under way a provider may keep something until its end.
			require.NoError(t, from.Close())
			require.NoError(t, to.Close())
			return
		}
		i := 0
		for _, r := range []*Reactor{from, to} {
			for _, l := range r.rails {
				eventually(t, r, func() bool { return of(l) == before[i] })
				i++
			}
		}
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
	})
}

// A stranger that takes the place of a piece on a rail ends the connection.
func TestStrangerOnRail(t *testing.T) {
	b := newBed(t, setting{Device: fabrictest.DeviceConfig{MaxMessage: 1000}})
	from, to, third := b.open(t, Config{Rails: 2}), b.open(t, Config{Rails: 2}), b.open(t, Config{Rails: 2})
	dialed, accepted := join(t, from, to)
	other, otherEnd := join(t, third, to)
	device := from.rails[0].device.(*fabrictest.Device)
	b.Network.Partition(device, to.rails[0].device.(*fabrictest.Device))
	q, err := dialed.Send(make([]byte, 100_000))
	require.NoError(t, err)
	eventually(t, to, func() bool { return accepted.stats.PiecesReceived > 0 })
	third.do(func() {
		op := third.newOperation(other, messageSend)
		op.kind, op.tag, op.lane, op.buf = fabric.OpTaggedSend, payloadTag(dialed), 1, make([]byte, 1000)
		op.ticket = other.writes.Push(third.newWrite(other, nil), 1)
		third.pushPart(op)
	})
	_, err = accepted.ReadMessage(deadline(t), make([]byte, 100_000))
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorIs(t, err, errStranger)
	b.Network.Heal(device, to.rails[0].device.(*fabrictest.Device))
	// The rest of the message may go before the sender hears of the end.
	if err := q.Wait(deadline(t)); err != nil {
		var ended *ConnError
		require.ErrorAs(t, err, &ended)
	}
	_ = dialed.CloseNow()
	_ = accepted.CloseNow()
	_ = other.CloseNow()
	_ = otherEnd.CloseNow()
}
