package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Reads, writes and atomic operations take an endpoint that has been asked for them: on shm and tcp's own of
// libfabric 2.1 those of others never complete, and keep what comes after them; on ofi_rxm they end the connection.
func TestOperationsTakeTheirCapability(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		lacks := func(what fabric.Capabilities) bool { return a.info.Capabilities()&what == 0 }
		require.True(t, lacks(fabric.RemoteMemory|fabric.Atomics))
		sum := &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: make([]byte, 8)}
		posts := []fabric.Op{
			{Kind: fabric.OpRead},
			{Kind: fabric.OpWrite},
			{Kind: fabric.OpWriteInject},
			{Kind: fabric.OpAtomic, Atomic: &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum}},
			{Kind: fabric.OpFetch, Atomic: sum},
		}
		for i := range posts {
			posts[i].Peer, posts[i].Buf = a.peer, make([]byte, 8)
		}
		_, err := a.e.Turn(posts, nil, 0)
		require.NoError(t, err)
		for i, op := range posts {
			require.ErrorIs(t, op.Err, fabric.ErrNotSupported, op.Kind)
			require.ErrorContains(t, op.Err, []string{"RemoteMemory", "Atomics"}[i/3], op.Kind)
		}
		// What comes after goes on.
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Buf: make([]byte, 8)})
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: 3, Buf: make([]byte, 8)})
		require.NoError(t, b.await(t, a).Err)
	})
}
