package efa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
	"github.com/weft-go/weft/tagged"
)

// Which test holds which behaviour of ordered writes. Those of this package run
// in every setting of main_test.go that can carry them, unless they hand out
// completions themselves, which only the device in memory lets them.
//
//	A write is a length and a payload message
//	    every size, eager limit and inject size -1, 0, +1  TestMessageSizes
//	    64 MiB                                             TestMessageOf64MiB
//	    the maximum, and one more                          TestMessageAboveMaximum
//	    as another program sees it                         TestAttach, TestInterop
//	Which receive takes which message
//	    masks and tags                                     tagged: TestTagMatching
//	    reads or writes first, or interleaved              TestQueuedBeforehand, TestInterop
//	Completions in any order
//	    four writes, in every order                        TestEveryOrderOfWrites, TestEveryOrderOfReads
//	    a thousand, in random orders                       TestRandomOrderOfWrites, TestRandomOrderOfReads
//	    the deques alone, against naive models             tagged: TestWriteDequeModel, TestReadDequeModel
//	    callbacks, exactly once                            TestAsyncCallbacksInOrder
//	    reordering on the emulated device                  scripts/test-efa faults: these tests, with 60 % reordered
//	The id wraps
//	    from 2^32-3                                        TestIDsWrap, TestAttachIDsWrap, TestInterop
//	    in the deque                                       tagged: TestReadDequeWraps
//	Many connections and peers
//	    2 connections of one pair, both from id 0          TestTwoConnectionsFromZero
//	    64 peers of one endpoint                           TestManyPeers
//	    some close while others are busy                   TestManyConnections
//	    the same connection id, told apart by the source   TestAttachSharedID
//	Refused posts
//	    one receiver that does not read                    TestSlowReaderHoldsWriterBack
//	    every other post refused                           TestEveryOtherPostIsRefused
//	A slow reader
//	    with credits                                       TestSlowReaderHoldsWriterBack
//	    without                                            TestAttachSlowReader, TestInterop
//	Bad input from a peer
//	    lengths, ids, credit, a short payload              TestBadPeer, TestAttachBadPeer
//	    a payload that is too long                         TestLongPayload
//	    no such connection, not the peer's address         TestStrayMessages, TestAttachUnknownSource, TestForeignPayload
//	    length messages that are too long                  TestTruncatedLengths
//	    announcements without payloads                     TestHostileAnnouncements
//	Close
//	    with 100 operations in flight                      TestCloseWithPendingOperations
//	    on both sides at the same time                     TestCloseWithUnreadMessages
//	    twice                                              TestCloseDelivers
//	    during a callback                                  TestCloseDuringCallback
//	    without a control connection                       TestAttachClose, TestAttachCloseDeadline
//	A peer that dies
//	    without closing                                    TestPeerLost, TestShmLostPeers
//	    by SIGKILL                                         TestPeerIsKilled, TestPeerIsKilledInLongWrite; cmd/weft: TestReceiverIsKilled, TestSenderIsKilled; TestInterop
//	    cut off                                            TestHostVanishes, TestPeerIsCutOff
//	    without a control connection                       TestAttachPeerIsGone, TestAttachPeerIsSilent
//	Deadlines and cancellation
//	    a read, a write                                    TestCancelledRead, TestCancelledWrite
//	    at random, both sides in step                      TestCancellationKeepsStep
//	    the buffer until the device lets go                TestReleasedIsClosed, TestReadersBufferStaysTheReaders

func TestMessageOf64MiB(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{})
		exchange(t, 1, dialed, accepted, []int{64 << 20, 1})
		closeBoth(t, dialed, accepted)
	})
}

// Writes before any read, reads before any write, and a mixture.
func TestQueuedBeforehand(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		const count = 40
		for _, first := range []string{"writes", "reads", "interleaved"} {
			t.Run(first, func(t *testing.T) {
				dialed, accepted := b.connect(t, Config{})
				ctx := deadline(t)
				size := func(i int) int { return i * 331 % 9000 }
				results := make(chan error, 2*count)
				write := func(i int) {
					require.NoError(t, dialed.WriteMessageAsync(message(1, i, size(i)), func(err error) { results <- err }))
				}
				// One after the other, as one reader: the order of calls at the
				// same time is anybody's.
				read := make(chan int, count)
				var reader sync.WaitGroup
				reader.Go(func() {
					buf := make([]byte, 9000)
					for i := range read {
						n, err := accepted.ReadMessage(ctx, buf)
						if err == nil && !bytes.Equal(message(1, i, size(i)), buf[:n]) {
							err = errors.New("another message")
						}
						results <- err
					}
				})
				for i := range count {
					switch first {
					case "writes":
						write(i)
					case "reads":
						read <- i
					default:
						if i%2 == 0 {
							write(i)
							read <- i
						} else {
							read <- i
							write(i)
						}
					}
				}
				if first == "reads" {
					require.Eventually(t, func() (waits bool) {
						accepted.reactor.do(func() { waits = len(accepted.readers) > 0 })
						return waits
					}, patience, 1e6)
				}
				for i := range count {
					switch first {
					case "writes":
						read <- i
					case "reads":
						write(i)
					}
				}
				close(read)
				for range 2 * count {
					require.NoError(t, <-results)
				}
				reader.Wait()
				closeBoth(t, dialed, accepted)
			})
		}
	})
}

func TestTwoConnectionsFromZero(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		var all sync.WaitGroup
		var ends [2][2]*Conn
		for k := range ends {
			x, y := join(t, from, to)
			ends[k] = [2]*Conn{x, y}
			require.Zero(t, x.nextWrite)
			require.Zero(t, y.nextWrite)
		}
		require.Same(t, ends[0][0].peer, ends[1][0].peer)
		for k, c := range ends {
			sizes := make([]int, 100)
			for i := range sizes {
				// The payloads of one id differ in length.
				sizes[i] = 5000 + i*31 + k*1000
			}
			all.Go(func() { exchange(t, k, c[0], c[1], sizes) })
			all.Go(func() { exchange(t, k+2, c[1], c[0], sizes) })
		}
		all.Wait()
		for _, c := range ends {
			closeBoth(t, c[0], c[1])
		}
	})
}

func TestManyPeers(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		to := b.open(t, Config{})
		peers := 64
		if testing.Short() {
			peers = 20
		}
		var all sync.WaitGroup
		for k := range peers {
			from := b.open(t, Config{})
			x, y := join(t, from, to)
			all.Go(func() {
				exchange(t, k, x, y, []int{k, 0, 5000 + k, 100, 4097})
				exchange(t, k, y, x, []int{5000 - k, k})
				closeBoth(t, x, y)
				if err := from.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		requireLetGo(t, to)
	})
}

// A payload longer than announced ends its own connection, and nothing is
// written beyond what was announced.
func TestLongPayload(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		to, third := b.open(t, Config{}), b.open(t, Config{})
		good, goodEnd := join(t, third, to)
		for _, size := range []int{50, 5000} {
			t.Run(fmt.Sprint(size), func(t *testing.T) {
				// A device each: on tcp of libfabric 1.17 the next message of one that has
				// sent too much may not arrive.
				from := b.open(t, Config{})
				bad, victim := join(t, from, to)
				bad.sendRaw(tagged.LengthTag(bad.remoteID, 0), lengthOf(int64(size)))
				n, err := victim.MessageSize(deadline(t))
				require.NoError(t, err)
				require.Equal(t, size, n)
				bad.sendRaw(tagged.PayloadTag(bad.remoteID, 0), make([]byte, size+1000))
				guard := bytes.Repeat([]byte{7}, size+1000)
				_, err = victim.ReadMessage(deadline(t), guard[:size])
				require.ErrorIs(t, err, ErrProtocol)
				require.Equal(t, bytes.Repeat([]byte{7}, 1000), guard[size:])
				exchange(t, 1, good, goodEnd, []int{3000, 5000})
				require.NoError(t, victim.Close())
				require.NoError(t, bad.CloseNow())
			})
		}
		closeBoth(t, good, goodEnd)
	})
}

// Reads and writes that are given up at random times: what was begun arrives,
// once and in order, and what was not is not there.
func TestCancellationKeepsStep(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.connect(t, Config{WindowMessages: 3})
		ctx := deadline(t)
		const count = 200
		var sent [count]bool // for certain
		var buffers []*InFlightError
		rng := rand.New(rand.NewPCG(1, 9))
		written := make(chan struct{})
		go func() {
			defer close(written)
			for i := range count {
				short, cancel := context.WithCancel(ctx)
				ended := make(chan error, 1)
				size := 20 + i*53%9000
				go func() { ended <- dialed.WriteMessage(short, message(1, i, size)) }()
				if rng.IntN(2) == 0 {
					cancel()
				}
				err := <-ended
				cancel()
				var in *InFlightError
				switch {
				case err == nil:
					sent[i] = true
				case errors.As(err, &in):
					buffers = append(buffers, in)
					sent[i] = true
				case !errors.Is(err, context.Canceled):
					t.Errorf("write %d: %v", i, err)
				}
			}
		}()
		// The number of a message is found by its content.
		known := make(map[string]int, count)
		for i := range count {
			known[string(message(1, i, 20+i*53%9000))] = i
		}
		var got []int
		stop := make(chan struct{})
		go func() {
			<-written
			// The last one, which is not given up.
			if err := dialed.WriteMessage(ctx, []byte("end")); err != nil {
				t.Errorf("the last write: %v", err)
			}
			close(stop)
		}()
		reads := rand.New(rand.NewPCG(2, 9))
		for {
			require.NoError(t, ctx.Err())
			short, cancel := context.WithCancel(ctx)
			if reads.IntN(2) == 0 {
				go cancel()
			}
			// A buffer of its own, which may stay in flight.
			buf := make([]byte, 10000)
			n, err := accepted.ReadMessage(short, buf)
			cancel()
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				continue
			}
			if string(buf[:n]) == "end" {
				break
			}
			i, ok := known[string(buf[:n])]
			require.True(t, ok, "a message of %d bytes that nobody wrote", n)
			got = append(got, i)
		}
		<-stop
		seen := make(map[int]bool)
		for k, i := range got {
			require.False(t, seen[i], "message %d twice", i)
			require.True(t, k == 0 || got[k-1] < i, "message %d after %d", i, got[max(k-1, 0)])
			seen[i] = true
		}
		for i := range sent {
			require.True(t, seen[i] || !sent[i], "message %d is lost", i)
		}
		closeBoth(t, dialed, accepted)
		for _, in := range buffers {
			<-in.Released
		}
	})
}

// A device that refuses every other post, and holds back completions, under
// several connections: each keeps its order.
func TestEveryOtherPostIsRefused(t *testing.T) {
	b := newBed(t, setting{Name: "fake", Faults: fabrictest.Faults{RefuseEveryOther: true, Reorder: 0.5}})
	from, to := b.open(t, Config{}), b.open(t, Config{})
	var all sync.WaitGroup
	var ends [8][2]*Conn
	for k := range ends {
		x, y := join(t, from, to)
		ends[k] = [2]*Conn{x, y}
		sizes := make([]int, 200)
		for i := range sizes {
			sizes[i] = (i*k*97 + i) % 9000
		}
		all.Go(func() { exchange(t, k, x, y, sizes) })
	}
	all.Wait()
	require.Positive(t, b.Network.Stats().Refused)
	for _, c := range ends {
		closeBoth(t, c[0], c[1])
	}
}
