package fabric_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// An atomic operation waits for a message that is late, while its region is closed, and more behind it than
// are kept of those that no access goes on in.
func TestAtomicWaitsForLateMessage(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		const child = "WEFT_TEST_LATE_MESSAGE"
		if os.Getenv(child) == "" {
			command := testprocess.Command(t, os.Args[0], "-test.run=^TestAtomicWaitsForLateMessage$", "-test.count=1", "-test.timeout=2m")
			command.Env = append(os.Environ(), child+"=yes", "FI_EFA_ENABLE_SHM_TRANSFER=0", "GLIBC_TUNABLES=glibc.malloc.perturb=165:glibc.malloc.tcache_count=0")
			said, err := command.CombinedOutput()
			require.NoError(t, err, "%s", said)
			return
		}
		quick, target := stations(t, "efa", fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
		f, d := partsOf(t, target.info)
		late := openStation(t, f, d, target.info)
		quick.peer, late.peer = quick.insert(t, target), late.insert(t, target)
		sum := &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: make([]byte, 8)}
		add := func(s *station, r *fabric.Region, memory []byte) fabric.Op {
			op := fabric.Op{Kind: fabric.OpFetch, Peer: s.peer, Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Atomic: sum}
			var err error
			op.Remote, err = r.RemoteOf(memory)
			require.NoError(t, err)
			return op
		}
		var regions []*fabric.Region
		var memories [][]byte
		for range 1500 {
			memory := make([]byte, 8)
			r, err := target.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, memory)
			require.NoError(t, err)
			regions, memories = append(regions, r), append(memories, memory)
		}
		for i, r := range regions {
			for _, s := range []*station{late, quick} {
				s.must(t, target, add(s, r, memories[i]))
				require.NoError(t, s.await(t, target).Err)
			}
		}

		testenv.Order(t, os.Getpid(), "hold 1")
		late.turn(t, []fabric.Op{{Kind: fabric.OpSend, Peer: late.peer, Buf: []byte{1}}})
		late.turn(t, []fabric.Op{add(late, regions[0], memories[0])})
		for range 2 {
			quick.must(t, target, add(quick, regions[1], memories[1]))
			require.NoError(t, quick.await(t, target).Err)
		}
		require.EqualValues(t, 2, memories[0][0], "it does not wait")

		for _, r := range regions {
			require.NoError(t, r.Close())
		}
		testenv.Order(t, os.Getpid(), "release")
		target.must(t, late, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
		for range 2 {
			require.NoError(t, late.await(t, target).Err)
		}
		require.NoError(t, target.await(t, late).Err)
		require.EqualValues(t, 3, memories[0][0])
	})
}
