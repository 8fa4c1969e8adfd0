package fabric_test

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testprocess"
)

// An address that is not taken, because it has no port, takes nothing from those of the same
// call that are: they can be sent to, and removed.
func TestInsertAllBesideOneThatIsNotTaken(t *testing.T) {
	eachWithAddresses(t, func(t *testing.T, info *fabric.Info) {
		f, d := partsOf(t, info)
		a, b := openStation(t, f, d, info), openStation(t, f, d, info)
		a.insert(t, b) // so that its address is there twice
		own, other := socketOf(t, a), socketOf(t, b)
		bad := slices.Clone(own)
		bad[2], bad[3] = 0, 0
		inserted, err := a.v.InsertAll([][]byte{bad, other, bad, own, other})
		require.NoError(t, err)
		for i, in := range inserted {
			if i == 0 || i == 2 {
				require.Error(t, in.Err)
				continue
			}
			require.NoError(t, in.Err)
		}
		before := a.v.Len()
		a.peer = inserted[4].Address
		tellOne(t, a, b)
		a.peer = inserted[3].Address
		tellOne(t, a, a)
		for _, i := range []int{1, 3, 4} {
			require.NoError(t, a.v.Remove(inserted[i].Address))
		}
		require.Less(t, a.v.Len(), before)
	})
}

// To insert a peer once more, beside an address that is not taken, does nothing to what is
// under way to it, also where the environment has libfabric end the connection of a peer
// that is removed.
func TestInsertAllAmidMessages(t *testing.T) {
	const cleanup, child = "FI_AV_REMOVE_CLEANUP", "WEFT_TEST_CLEANUP"
	if os.Getenv(child) == "" {
		command := testprocess.Command(t, os.Args[0], "-test.run=^TestInsertAllAmidMessages$", "-test.count=1")
		command.Env = append(os.Environ(), cleanup+"=1", child+"=yes")
		said, err := command.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	eachWithAddresses(t, func(t *testing.T, info *fabric.Info) {
		// They are longer than what the system keeps of a connection that is closed.
		const count, size = 8, 1 << 20
		f, d := partsOf(t, info)
		a, b := openStation(t, f, d, info), openStation(t, f, d, info)
		a.peer = a.insert(t, b)
		tellOne(t, a, b)
		for range count {
			a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: make([]byte, size)})
		}
		bad := slices.Clone(socketOf(t, b))
		bad[2], bad[3] = 0, 0
		inserted, err := a.v.InsertAll([][]byte{bad, socketOf(t, b)})
		require.NoError(t, err)
		require.NoError(t, inserted[1].Err)
		for range count {
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, size)})
			require.NoError(t, b.await(t, a).Err)
		}
		for range count {
			require.NoError(t, a.await(t, b).Err)
		}
	})
}

// What cannot be made whole is not inserted; it says so for itself, and for no other.
func TestBefriendFailsForOne(t *testing.T) {
	places, codes := []uint64{7, uint64(fabric.AddressAny), 8, 9, 8, 7}, make([]int32, 6)
	var again []uint64
	fabric.Befriend(places, codes, 1, func(place uint64) int {
		again = append(again, place)
		if place == 9 {
			return int(syscall.ENOMEM)
		}
		return 0
	})
	require.Equal(t, []uint64{8, 9}, again)
	require.Equal(t, []uint64{7, uint64(fabric.AddressAny), 8, uint64(fabric.AddressAny), 8, 7}, places)
	require.Equal(t, []int32{0, 0, 0, int32(syscall.ENOMEM), 0, 0}, codes)
}

// eachWithAddresses runs on each provider whose addresses have ports.
func eachWithAddresses(t *testing.T, test func(t *testing.T, info *fabric.Info)) {
	each(t, func(t *testing.T, provider string) {
		info := strewInfo(t, provider)
		if !info.IP() {
			return // nothing to count, and no port to be without
		}
		test(t, info)
		if provider != "tcp" || fabric.LibraryVersion().Major < 2 {
			return
		}
		own, err := fabric.Choose(fabric.Preference{Providers: []string{"tcp;"}, Require: true, Source: "127.0.0.1"})
		require.NoError(t, err)
		t.Run("its own", func(t *testing.T) { test(t, own.Info) })
	})
}

func socketOf(t *testing.T, s *station) []byte {
	t.Helper()
	name, err := s.e.Name()
	require.NoError(t, err)
	return name
}

// tellOne sends one message to the peer of a, which is b.
func tellOne(t *testing.T, a, b *station) {
	t.Helper()
	b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)})
	a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: make([]byte, 8)})
	require.NoError(t, b.await(t, a).Err)
	require.NoError(t, a.await(t, b).Err)
}
