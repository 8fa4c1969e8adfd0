package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func TestWrongOperations(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		for _, op := range []fabric.Op{
			{},
			{Kind: 200},
			{Kind: fabric.OpRemoteWrite},
			{Kind: fabric.OpSend, Vector: make([][]byte, 9)},
			{Kind: fabric.OpSend, Vector: [][]byte{{1}}, Buf: []byte{1}},
			{Kind: fabric.OpSend, Vector: [][]byte{{1}}, Descriptors: make([]fabric.Descriptor, 2)},
			{Kind: fabric.OpInject, Flags: fabric.Fence},
			{Kind: fabric.OpAtomic, Buf: make([]byte, 8)},
			{Kind: fabric.OpAtomic, Buf: make([]byte, 7), Atomic: &fabric.Atomic{Type: fabric.Int64}},
			{Kind: fabric.OpFetch, Buf: make([]byte, 8), Atomic: &fabric.Atomic{Type: fabric.Int64}},
			{Kind: fabric.OpCompare, Buf: make([]byte, 8), Atomic: &fabric.Atomic{Type: fabric.Int64, Result: make([]byte, 8)}},
			{Kind: fabric.OpAtomic, Buf: make([]byte, 8), Atomic: &fabric.Atomic{Type: 99}},
			// 8 bytes, if 2^64 were none.
			{Kind: fabric.OpFetch, Atomic: &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.AtomicRead, Count: 1<<61 + 1, Result: make([]byte, 8)}},
			{Kind: fabric.OpFetch, Atomic: &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.AtomicRead, Count: -1}},
			{Kind: fabric.OpFetch, Atomic: &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.AtomicRead, Count: 2, Result: make([]byte, 8)}},
			{Kind: fabric.OpAtomicInject, Flags: fabric.Immediate, Buf: make([]byte, 8), Atomic: &fabric.Atomic{Type: fabric.Int64, Operation: fabric.Sum}},
			{Kind: fabric.OpRead, Flags: fabric.Immediate, Buf: make([]byte, 8)},
			{Kind: fabric.OpRead, Flags: fabric.Immediate | fabric.WithCompletion, Vector: [][]byte{{1}, {2}}},
			{Kind: fabric.OpTaggedReceive, Flags: fabric.Claim, Claimed: 12345},
		} {
			got := a.post(t, b, op)
			require.Equal(t, fabric.Failed, got.Result, "%+v", op)
			require.ErrorIs(t, got.Err, fabric.ErrInvalid)
		}
		require.Zero(t, a.q.InFlight())
	})
}

// Where nobody can wait, a turn that should says of each operation that it was not tried.
func TestTurnWaitThatCannot(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		if a.q.WaitDescriptor() >= 0 {
			testenv.Need(t, "queues without a wait object on "+provider, errors.New("they have one"))
		}
		posted := a.must(t, b, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
		require.Equal(t, fabric.Posted, posted.Result)
		posts := []fabric.Op{posted}
		_, err := a.e.TurnWait(posts, nil, 1)
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		require.Equal(t, fabric.Failed, posts[0].Result)
		require.Zero(t, posts[0].Token)
		require.Equal(t, err, posts[0].Err)
		require.Equal(t, 1, a.q.InFlight())
	})
}

// The peer does not count on a connected endpoint: nothing overtakes what was refused.
// Of the providers here sockets refuses long messages where a short one has room.
func TestRefusalOfConnected(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "sockets", Endpoint: fabric.Connected, Capabilities: fabric.Messages,
		MemoryMode: everyMemoryMode, Source: "127.0.0.1",
	})
	testenv.Need(t, "sockets", err)
	a, _ := openOffice(t, infos[0]).couple(t)
	posts := make([]fabric.Op, 128)
	for full := 0; full < 100; {
		for i := range posts {
			posts[i] = fabric.Op{Kind: fabric.OpInject, Peer: fabric.Address(i), Buf: make([]byte, 1)}
			if i%2 == 0 {
				posts[i].Buf = make([]byte, infos[0].Send().InjectSize)
			}
		}
		_, err := a.Turn(posts, nil, 0)
		require.NoError(t, err)
		refused := false
		for i, op := range posts {
			require.NoError(t, op.Err)
			require.False(t, refused && op.Result == fabric.Posted, "operation %d was posted behind one that was refused", i)
			refused = refused || op.Result == fabric.Refused
		}
		if refused {
			full++
		}
	}
}
