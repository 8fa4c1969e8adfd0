package fabric_test

import (
	"bytes"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testprocess"
)

// withinHost has the test run again where efa hands what stays within the host to shm, and says
// whether it is there.
func withinHost(t *testing.T, test, run string) bool {
	t.Helper()
	const child = "WEFT_TEST_WITHIN_HOST"
	if os.Getenv(child) == test {
		return true
	}
	command := testprocess.Command(t, os.Args[0], "-test.run="+run, "-test.count=1", "-test.short", "-test.timeout=5m")
	command.Env = append(os.Environ(), child+"="+test, "FI_EFA_ENABLE_SHM_TRANSFER=1")
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return false
}

// Endpoints of one process look into each other's memory: in whatever order they are closed, none
// looks at one that is gone.
func TestCloseWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		withinHost(t, "close", "^Test(CloseOrdersOfDatagrams|ClosePortInFlight|NeighbourEndsAmidMessages|InsertClosedNeighbour)$")
	})
}

// What is sent within the host does as what is sent by the device, if it is empty, too long or a
// stranger's.
func TestEdgesWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		withinHost(t, "edges", "^Test(TruncationOfOne|ZeroLength|ZeroLengthAccess|Strangers.*)$/^efa$")
	})
}

// What is under way to a process of the host that is killed, over shm, holds nothing up.
func TestPeerEndsWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		withinHost(t, "peer ends", "^TestPeerEndsAmidUndertakings$/^efa$/^(killed|going_on)$")
	})
}

// An access within the host to memory that is not mapped, as after a peer has given it back,
// fails, and nothing else does. In libfabric 2 the peer refuses it, and does not answer: it is
// under way until the endpoint is closed, which has no place for anything else to that peer.
func TestUnmappedMemoryWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		if !withinHost(t, "unmapped", "^TestUnmappedMemoryWithinHost$") {
			return
		}
		for name, op := range map[string]fabric.Op{
			"read":       {Kind: fabric.OpRead, Buf: make([]byte, 8)},
			"long read":  {Kind: fabric.OpRead, Buf: make([]byte, longAccess)},
			"write":      {Kind: fabric.OpWrite, Buf: make([]byte, 8)},
			"long write": {Kind: fabric.OpWrite, Buf: make([]byte, longAccess)},
		} {
			t.Run(name, func(t *testing.T) {
				a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
				memory := make([]byte, longAccess)
				region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, region.Close()) })
				op.Peer = a.peer
				op.Remote, err = region.RemoteOf(memory)
				require.NoError(t, err)
				require.NoError(t, a.goesOn(t, b))
				refuses := fabric.LibraryVersion().Major >= 2
				for range 3 {
					const unmapped, context = 0x1000, 77
					op.Context = context
					posted := fabric.PostAnywhere(a.e, op, unmapped)
					failure := posted.Err
					if refuses {
						require.NoError(t, b.goesOn(t, a))
						continue
					}
					if failure == nil {
						done := a.await(t, b)
						require.Equal(t, uint64(context), done.Context)
						failure = done.Err
					}
					require.Error(t, failure)
					require.NoError(t, a.goesOn(t, b))
					require.NoError(t, b.goesOn(t, a))
				}
				require.NoError(t, a.e.Close())
				require.NoError(t, b.e.Close())
			})
		}
	})
}

// An access that fails is told from those after it, also when much has come that nobody has read.
func TestFailedAccessAmidMessagesWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		// After an access that libfabric 2 refuses, it has nothing else to that peer.
		if !withinHost(t, "amid messages", "^TestFailedAccessAmidMessagesWithinHost$") || fabric.LibraryVersion().Major >= 2 {
			return
		}
		for _, kind := range []fabric.OpKind{fabric.OpRead, fabric.OpWrite} {
			t.Run(kind.String(), func(t *testing.T) {
				a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory)
				memory := make([]byte, 64)
				region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, region.Close()) })
				remote, err := region.RemoteOf(memory)
				require.NoError(t, err)
				require.NoError(t, a.goesOn(t, b))
				require.NoError(t, b.goesOn(t, a))
				for range 250 {
					b.turn(t, []fabric.Op{{Kind: fabric.OpSend, Peer: b.peer, Buf: make([]byte, 8), Context: 1000}})
				}
				// What has come is in the provider, whose queue of it is not read any further.
				_, err = a.e.Turn(nil, make([]fabric.Completion, 1), 0)
				require.NoError(t, err)
				const unmapped, bad, good = 0x1000, 77, 3
				op := fabric.Op{Kind: kind, Peer: a.peer, Buf: make([]byte, 8), Remote: remote, Context: bad}
				failure := fabric.PostAnywhere(a.e, op, unmapped).Err
				for i := range good {
					op.Context = uint64(i)
					a.must(t, b, op)
				}
				for done := 0; done < good || failure == nil; {
					c := a.await(t, b)
					if c.Context == bad {
						require.NoError(t, failure, "it has failed twice")
						require.Error(t, c.Err)
						failure = c.Err
						continue
					}
					require.NoError(t, c.Err, "access %d", c.Context)
					done++
				}
				require.Error(t, failure)
				require.NoError(t, a.e.Close())
				require.NoError(t, b.e.Close())
			})
		}
	})
}

// askForNothing asks for an info of efa that there is not.
func askForNothing(t *testing.T) {
	_, err := fabric.Discover(fabric.Hints{
		Provider: "efa", Endpoint: fabric.ReliableDatagram, MemoryMode: everyMemoryMode,
		Capabilities: fabric.Messages | fabric.Collectives,
	})
	assert.ErrorIs(t, err, fabric.ErrNotFound)
}

// asking asks again and again until it is told to end.
func asking(t *testing.T) (end func()) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				askForNothing(t)
			}
		}
	})
	return func() {
		close(ended)
		all.Wait()
	}
}

// To ask for an info that there is not takes nothing from what is open, or is being opened.
func TestInfosWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		if !withinHost(t, "infos", "^TestInfosWithinHost$") {
			return
		}
		t.Run("before endpoints are opened", func(t *testing.T) {
			infos, err := fabric.Discover(fabric.Hints{
				Provider: "efa", Endpoint: fabric.ReliableDatagram, Capabilities: fabric.Messages, MemoryMode: everyMemoryMode,
				OneThread: true, OrderedSends: true,
			})
			require.NoError(t, err)
			askForNothing(t)
			f, d := partsOf(t, infos[0])
			askForNothing(t)
			a, b := openStation(t, f, d, infos[0]), openStation(t, f, d, infos[0])
			a.peer, b.peer = a.insert(t, b), b.insert(t, a)
			require.NoError(t, a.goesOn(t, b))
		})
		t.Run("while endpoints are opened", func(t *testing.T) {
			a, _ := stations(t, "efa", fabric.Messages|fabric.RemoteMemory)
			f, d := partsOf(t, a.info)
			end := asking(t)
			defer end()
			for range 40 {
				q, v, e := queueOf(t, d, 512), vectorOf(t, d), endpointOf(t, d)
				require.NoError(t, e.Enable(v, q, eventsOf(t, f)))
				for range 5 {
					_, err := q.Read(make([]fabric.Completion, 1), 0)
					require.NoError(t, err)
				}
				require.NoError(t, e.Close())
				require.NoError(t, v.Close())
				require.NoError(t, q.Close())
			}
		})
		t.Run("while endpoints are busy", func(t *testing.T) {
			a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory)
			f, d := partsOf(t, a.info)
			var all sync.WaitGroup
			var ended atomic.Bool
			for range 4 {
				s := openStation(t, f, d, a.info)
				all.Go(func() {
					for !ended.Load() {
						_, err := s.e.Turn(nil, make([]fabric.Completion, 8), 0)
						assert.NoError(t, err)
					}
				})
			}
			// Each would have to find all of them idle.
			for range 5 {
				askForNothing(t)
			}
			ended.Store(true)
			all.Wait()
			require.NoError(t, a.goesOn(t, b))
		})
		t.Run("amid accesses", func(t *testing.T) {
			a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory)
			memory := make([]byte, 8)
			region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, region.Close()) })
			remote, err := region.RemoteOf(memory)
			require.NoError(t, err)
			end := asking(t)
			defer end()
			for written := range 100 {
				a.must(t, b, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: bytes.Repeat([]byte{byte(written)}, 8), Remote: remote, Context: uint64(written)})
				done := a.await(t, b)
				require.NoError(t, done.Err)
				require.EqualValues(t, written, done.Context)
			}
		})
	})
}

// What nobody has received of peers of this process is looked at no more when they end together, each
// of a domain of its own.
func TestUnreadWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		if !withinHost(t, "unread", "^TestUnreadWithinHost$") {
			return
		}
		for round := range 8 {
			info := strewInfo(t, "efa")
			var all []*station
			for range 4 {
				f, d := partsOf(t, info)
				all = append(all, openStation(t, f, d, info))
			}
			for i, s := range all {
				other := all[(i+1)%len(all)]
				s.peer = s.insert(t, other)
				arrive(t, s, other, fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: 1 << 20})
			}
			for range 40 {
				for _, s := range all {
					for _, size := range []int{100, 16_000, 60_000, 130_000} {
						s.turn(t, []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: s.peer, Tag: 1, Buf: make([]byte, size)}})
					}
				}
			}
			for i := range all {
				s := all[(i+round)%len(all)]
				require.NoError(t, s.e.Close())
				require.NoError(t, s.q.Close())
				require.NoError(t, s.v.Close())
				require.NoError(t, s.events.Close())
				require.NoError(t, s.domain.Close())
			}
		}
	})
}
