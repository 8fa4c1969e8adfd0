package fabric_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// An endpoint of shm that is closed stays open inside while another knows it, and goes on
// with what it has sent when its queue is read. Its regions may be closed behind it: they
// are nothing that libfabric looks at by then. What was freed is not what it was, and
// pieces go through the memory of both, so this is a process of its own.
func TestRegionIsClosedUnderAbandonedSends(t *testing.T) {
	const child = "WEFT_TEST_ABANDONED"
	if os.Getenv(child) != "" {
		abandonSends(t)
		return
	}
	_, err := fabric.Discover(fabric.Hints{Provider: "shm"})
	testenv.Need(t, "shm", err)
	for _, off := range []string{"1", "0"} {
		t.Run("FI_SHM_DISABLE_CMA="+off, func(t *testing.T) {
			command := testprocess.Command(t, os.Args[0], "-test.run=^TestRegionIsClosedUnderAbandonedSends$", "-test.count=1", "-test.timeout=1m")
			command.Env = append(os.Environ(), child+"=yes", "MALLOC_PERTURB_=165", "FI_SHM_DISABLE_CMA="+off, "FI_SHM_SAR_THRESHOLD=10000000")
			said, err := command.CombinedOutput()
			require.NoError(t, err, "%s", said)
		})
	}
}

func abandonSends(t *testing.T) {
	const size = 300_000
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "shm", Endpoint: fabric.ReliableDatagram, Capabilities: fabric.TaggedMessages | fabric.RemoteMemory | fabric.Atomics,
		MemoryMode: everyMemoryMode, OneThread: true, OrderedSends: true,
	})
	require.NoError(t, err)
	info := infos[0]
	for _, kind := range []fabric.OpKind{fabric.OpTaggedSend, fabric.OpFetch, fabric.OpRead, fabric.OpWrite} {
		f, d := partsOf(t, info)
		b := openStation(t, f, d, info)
		stays := openStation(t, f, d, info)
		a := stationAt(t, f, d, info, stays.q)
		a.peer, b.peer = a.insert(t, b), b.insert(t, a)
		_, remote := shared(t, b, size)
		memory, err := fabric.NewArena(size)
		require.NoError(t, err)
		region, err := memory.Register(d, fabric.RegionConfig{Access: fabric.AccessAll})
		require.NoError(t, err)
		op := fabric.Op{Kind: kind, Peer: a.peer, Tag: 3, Buf: memory.Bytes()[:size], Descriptor: region.Descriptor(), Remote: remote}
		if kind == fabric.OpFetch {
			op.Buf = op.Buf[:8]
			op.Atomic = &fabric.Atomic{
				Type: fabric.Uint64, Operation: fabric.Sum, Result: memory.Bytes()[8:16], ResultDescriptor: region.Descriptor(),
			}
		}
		a.must(t, b, op)
		require.NoError(t, a.e.Close())
		require.NoError(t, region.Close())
		if kind == fabric.OpTaggedSend {
			b.must(t, b, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Buf: make([]byte, size)})
		}
		for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
			b.turn(t, nil)
			stays.turn(t, nil)
		}
		require.NoError(t, memory.Close())
	}
}
