package fabric_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

func TestUntaggedMessages(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.SourceAddress)
		for _, size := range []int{0, 1, 64, 5000, 1 << 20} {
			sent, got := bytes.Repeat([]byte{7, 9}, size/2+1)[:size], make([]byte, size)
			b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 2})
			a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: sent, Context: 1})
			c := b.await(t, a)
			require.NoError(t, c.Err)
			require.EqualValues(t, 2, c.Context)
			require.Equal(t, size, c.Len)
			require.Equal(t, b.peer, c.Source)
			require.True(t, bytes.Equal(sent, got))
			c = a.await(t, b)
			require.NoError(t, c.Err)
			require.EqualValues(t, 1, c.Context)
		}
		b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
		a.must(t, b, fabric.Op{Kind: fabric.OpInject, Peer: a.peer, Buf: []byte("injected")})
		require.Equal(t, 8, b.await(t, a).Len)
		require.Zero(t, a.q.InFlight()+b.q.InFlight())
	})
}

func TestVectors(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		for _, kinds := range [][2]fabric.OpKind{{fabric.OpSend, fabric.OpReceive}, {fabric.OpTaggedSend, fabric.OpTaggedReceive}} {
			got := [][]byte{make([]byte, 3), make([]byte, 8)}
			b.must(t, a, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Tag: 4, Vector: got})
			a.must(t, b, fabric.Op{Kind: kinds[0], Peer: a.peer, Tag: 4, Vector: [][]byte{[]byte("hello "), []byte("world")}})
			c := b.await(t, a)
			require.NoError(t, c.Err)
			require.Equal(t, 11, c.Len)
			require.Equal(t, "hello world", string(got[0])+string(got[1]))
			require.NoError(t, a.await(t, b).Err)
		}
	})
}

func TestImmediate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		for _, op := range []fabric.Op{
			{Kind: fabric.OpSend, Buf: []byte("data")},
			{Kind: fabric.OpTaggedSend, Buf: []byte("data")},
			{Kind: fabric.OpInject, Buf: []byte("data")},
			{Kind: fabric.OpTaggedInject, Buf: []byte("data")},
			{Kind: fabric.OpTaggedSend, Flags: fabric.TransmitComplete, Buf: []byte("data")},
			{Kind: fabric.OpSend, Vector: [][]byte{[]byte("da"), []byte("ta")}},
		} {
			t.Run(fmt.Sprint(op.Kind, op.Flags, len(op.Vector)), func(t *testing.T) {
				receive := fabric.OpReceive
				if op.Kind == fabric.OpTaggedSend || op.Kind == fabric.OpTaggedInject {
					receive = fabric.OpTaggedReceive
				}
				b.must(t, a, fabric.Op{Kind: receive, Peer: fabric.AddressAny, Buf: make([]byte, 16)})
				op.Flags |= fabric.Immediate
				op.Peer, op.Immediate = a.peer, 0x11223344
				a.must(t, b, op)
				c := b.await(t, a)
				require.NoError(t, c.Err)
				require.Equal(t, 4, c.Len)
				require.True(t, c.HasImmediate)
				require.EqualValues(t, 0x11223344, c.Immediate)
				if op.Kind != fabric.OpInject && op.Kind != fabric.OpTaggedInject {
					require.NoError(t, a.await(t, b).Err)
				}
			})
		}
	})
}

// One buffer takes many messages, and comes back when it is full.
func TestMultiReceive(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.MultiReceiveBuffers)
		const size, count = 100, 200
		// A buffer with room for less is released.
		require.NoError(t, b.e.SetSizeOption(fabric.OptionMinMultiReceive, size))
		buf := make([]byte, 4096)
		b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: buf, Flags: fabric.MultiReceive, Context: 5})
		posted, end := 1, false
		for i := range count {
			sent := bytes.Repeat([]byte{byte(i)}, size)
			a.must(t, b, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: sent})
			c := b.await(t, a)
			// The end of the buffer may come as a completion of its own.
			if c.Released && c.Len == 0 {
				b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: buf, Flags: fabric.MultiReceive, Context: 5})
				posted++
				c = b.await(t, a)
			}
			require.NoError(t, c.Err)
			require.EqualValues(t, 5, c.Context)
			require.Equal(t, size, c.Len)
			require.Equal(t, sent, buf[c.Offset:c.Offset+size])
			if end = c.Released; end {
				b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: buf, Flags: fabric.MultiReceive, Context: 5})
				posted++
			}
			require.NoError(t, a.await(t, b).Err)
		}
		require.Greater(t, posted, count*size/len(buf))
	})
}

// peek asks until the provider has seen the message, and says whether it can
// peek at all.
func peek(t *testing.T, b, a *station, tag uint64, flags fabric.OpFlags) fabric.Completion {
	t.Helper()
	for range 100_000 {
		op := b.post(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: tag, Flags: fabric.Peek | flags, Context: 77})
		testenv.Need(t, "peek on "+b.info.Provider(), op.Err)
		c := b.await(t, a)
		require.EqualValues(t, 77, c.Context)
		if c.Err == nil {
			return c
		}
		require.ErrorIs(t, c.Err, fabric.ErrNoMessage)
	}
	t.Fatal("the message never came")
	return fabric.Completion{}
}

func TestPeekClaimDiscard(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider == "shm" {
			testenv.Need(t, "peek on shm", errors.New("a peek gives no completion on shm (libfabric 1.17)"))
		}
		a, b := stations(t, provider, fabric.TaggedMessages)
		send := func(tag uint64, text string) {
			a.must(t, b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: tag, Buf: []byte(text)})
		}
		miss := b.post(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Flags: fabric.Peek})
		require.NoError(t, miss.Err)
		require.ErrorIs(t, b.await(t, a).Err, fabric.ErrNoMessage)

		// Seen, and still there.
		send(1, "one")
		require.Equal(t, 3, peek(t, b, a, 1, 0).Len)
		buf := make([]byte, 8)
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: buf})
		c := b.await(t, a)
		require.NoError(t, c.Err)
		require.Equal(t, "one", string(buf[:c.Len]))

		// Two claimed, received in reverse.
		send(2, "first")
		send(2, "second")
		one := peek(t, b, a, 2, fabric.Claim)
		two := peek(t, b, a, 2, fabric.Claim)
		for i, claimed := range []fabric.Completion{two, one} {
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: buf, Flags: fabric.Claim, Claimed: claimed.Token})
			c := b.await(t, a)
			require.NoError(t, c.Err)
			require.Equal(t, []string{"second", "first"}[i], string(buf[:c.Len]))
		}
		again := b.post(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: buf, Flags: fabric.Claim, Claimed: one.Token})
		require.ErrorIs(t, again.Err, fabric.ErrInvalid)
		require.ErrorContains(t, again.Err, "no claimed message")

		// Discarded, and gone.
		send(3, "unwanted")
		peek(t, b, a, 3, fabric.Discard)
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Flags: fabric.Peek})
		require.ErrorIs(t, b.await(t, a).Err, fabric.ErrNoMessage)
		require.Zero(t, b.q.InFlight())
	})
}

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
			{Kind: fabric.OpTaggedReceive, Flags: fabric.Claim, Claimed: 12345},
		} {
			got := a.post(t, b, op)
			require.Equal(t, fabric.Failed, got.Result, "%+v", op)
			require.ErrorIs(t, got.Err, fabric.ErrInvalid)
		}
		require.Zero(t, a.q.InFlight())
	})
}
