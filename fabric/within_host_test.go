package fabric_test

import (
	"bytes"
	"os"
	"testing"

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

// To ask for an info that there is not takes nothing from endpoints that are open.
func TestInfosWithinHost(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		if !withinHost(t, "infos", "^TestInfosWithinHost$") {
			return
		}
		a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory)
		memory := make([]byte, 8)
		region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, region.Close()) })
		remote, err := region.RemoteOf(memory)
		require.NoError(t, err)
		asked := make(chan error)
		go func() {
			defer close(asked)
			for range 20 {
				_, err := fabric.Discover(fabric.Hints{
					Provider: "efa", Endpoint: fabric.ReliableDatagram, MemoryMode: everyMemoryMode,
					Capabilities: fabric.Messages | fabric.Collectives,
				})
				asked <- err
			}
		}()
		for written, more := byte(0), true; more; written++ {
			select {
			case err, ok := <-asked:
				if more = ok; ok {
					require.ErrorIs(t, err, fabric.ErrNotFound)
				}
			default:
			}
			a.must(t, b, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: bytes.Repeat([]byte{written}, 8), Remote: remote, Context: uint64(written)})
			done := a.await(t, b)
			require.NoError(t, done.Err)
			require.EqualValues(t, written, done.Context)
		}
	})
}
