package fabric_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// Nothing can be sent in every way.
func TestZeroLength(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		for i, op := range []fabric.Op{
			{Kind: fabric.OpSend},
			{Kind: fabric.OpTaggedSend},
			{Kind: fabric.OpInject},
			{Kind: fabric.OpTaggedInject},
			{Kind: fabric.OpSend, Buf: []byte{}},
			{Kind: fabric.OpSend, Vector: [][]byte{{}}},
			{Kind: fabric.OpTaggedSend, Vector: [][]byte{{}, nil}},
			{Kind: fabric.OpSend, Flags: fabric.DeliveryComplete},
			{Kind: fabric.OpTaggedSend, Flags: fabric.TransmitComplete},
			{Kind: fabric.OpSend, Flags: fabric.Immediate},
			{Kind: fabric.OpTaggedSend, Flags: fabric.Immediate},
			{Kind: fabric.OpInject, Flags: fabric.Immediate},
			{Kind: fabric.OpTaggedInject, Flags: fabric.Immediate},
		} {
			for _, receive := range []fabric.Op{{Buf: make([]byte, 8)}, {}, {Vector: [][]byte{{}, make([]byte, 4)}}} {
				t.Run(fmt.Sprint(i, op.Kind, op.Flags, len(receive.Buf), len(receive.Vector)), func(t *testing.T) {
					receive.Kind, receive.Peer = fabric.OpReceive, fabric.AddressAny
					if op.Kind == fabric.OpTaggedSend || op.Kind == fabric.OpTaggedInject {
						receive.Kind = fabric.OpTaggedReceive
					}
					op.Peer, op.Immediate = a.peer, 7
					if refusesEmpty(provider, op) {
						require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrNotSupported)
						return
					}
					b.must(t, a, receive)
					a.must(t, b, op)
					done := b.await(t, a)
					require.NoError(t, done.Err)
					require.Zero(t, done.Len)
					require.Equal(t, op.Flags&fabric.Immediate != 0, done.HasImmediate)
					if done.HasImmediate {
						require.EqualValues(t, 7, done.Immediate)
					}
					if op.Kind == fabric.OpSend || op.Kind == fabric.OpTaggedSend {
						require.NoError(t, a.await(t, b).Err)
					}
				})
			}
		}
		require.Zero(t, a.q.InFlight()+b.q.InFlight())
	})
}

// Empty pieces of a vector count for nothing.
func TestVectorWithEmptyPieces(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		got := [][]byte{{}, make([]byte, 2), nil, make([]byte, 8)}
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Vector: got})
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Vector: [][]byte{nil, []byte("pie"), {}, []byte("ces")}})
		done := b.await(t, a)
		require.NoError(t, done.Err)
		require.Equal(t, 6, done.Len)
		require.Equal(t, "pieces", string(got[1])+string(got[3][:4]))
		require.NoError(t, a.await(t, b).Err)
	})
}

// Access to no bytes of a peer's memory completes, and changes nothing.
func TestZeroLengthAccess(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory)
		memory, remote := shared(t, b, 64)
		copy(memory, "untouched")
		for i, op := range []fabric.Op{
			{Kind: fabric.OpWrite},
			{Kind: fabric.OpRead},
			{Kind: fabric.OpWrite, Vector: [][]byte{{}}},
			{Kind: fabric.OpWrite, Flags: fabric.DeliveryComplete},
			{Kind: fabric.OpWriteInject},
			{Kind: fabric.OpWrite, Flags: fabric.Immediate},
			{Kind: fabric.OpWriteInject, Flags: fabric.Immediate},
		} {
			t.Run(fmt.Sprint(i, op.Kind, op.Flags), func(t *testing.T) {
				op.Peer, op.Remote, op.Immediate = a.peer, remote, 9
				if refusesEmpty(provider, op) {
					require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrNotSupported)
					return
				}
				a.must(t, b, op)
				if op.Kind != fabric.OpWriteInject {
					done := a.await(t, b)
					require.NoError(t, done.Err)
					require.Equal(t, op.Kind, done.Kind)
				}
				if op.Flags&fabric.Immediate != 0 {
					done := b.await(t, a)
					require.NoError(t, done.Err)
					require.Equal(t, fabric.OpRemoteWrite, done.Kind)
					require.EqualValues(t, 9, done.Immediate)
				}
			})
		}
		require.Equal(t, "untouched", string(memory[:9]))
	})
}

// Flags that an endpoint has for operations without any are those of empty ones, too.
func TestZeroLengthWithDefaultFlags(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		infos, err := fabric.Discover(fabric.Hints{
			Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: fabric.Messages | fabric.RemoteMemory,
			MemoryMode: everyMemoryMode, OneThread: true, Source: sourceOn(provider), SendFlags: fabric.DeliveryComplete,
		})
		testenv.Need(t, "DeliveryComplete of everything on "+provider, err)
		f, d := partsOf(t, infos[0])
		a, b := openStation(t, f, d, infos[0]), openStation(t, f, d, infos[0])
		a.peer, b.peer = a.insert(t, b), b.insert(t, a)
		_, remote := shared(t, b, 64)
		for _, kind := range []fabric.OpKind{fabric.OpWrite, fabric.OpSend} {
			op := fabric.Op{Kind: kind, Peer: a.peer, Remote: remote}
			if kind == fabric.OpSend {
				op.Remote = fabric.Remote{}
			}
			as := op
			as.Flags = fabric.DeliveryComplete
			if refusesEmpty(provider, as) {
				require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrNotSupported)
				continue
			}
			if kind == fabric.OpSend {
				b.must(t, a, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
			}
			a.must(t, b, op)
			require.NoError(t, a.await(t, b).Err)
			if kind == fabric.OpSend {
				require.NoError(t, b.await(t, a).Err)
			}
		}
	})
}
