package fabric_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
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

// So it is for ports that are counted past the last one.
func TestInsertSymmetricPastTheLastPort(t *testing.T) {
	eachWithAddresses(t, func(t *testing.T, info *fabric.Info) {
		_, d := partsOf(t, info)
		v := vectorOf(t, d)
		inserted, err := v.InsertSymmetric("127.0.0.1", 1, "65534", 4)
		require.NoError(t, err)
		require.Len(t, inserted, 4)
		require.NoError(t, inserted[0].Err)
		for _, in := range inserted {
			if in.Err == nil {
				require.NoError(t, v.Remove(in.Address))
			}
		}
		require.Zero(t, v.Len())
	})
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
