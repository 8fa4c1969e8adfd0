package fabric_test

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// What is posted together with FI_MORE arrives as it does without, in order,
// whether or not the provider makes anything of it.
func TestBatching(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		require.False(t, a.e.Batching(), "on by default, which this provider gains nothing from")
		for _, s := range []*station{a, b} {
			require.NoError(t, s.e.SetBatching(true))
			require.True(t, s.e.Batching())
		}
		const count = 64
		receives, sends := make([]fabric.Op, count), make([]fabric.Op, count)
		for i := range count {
			receives[i] = fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 4), Tag: 7}
			sends[i] = fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Buf: binary.BigEndian.AppendUint32(nil, uint32(i)), Tag: 7}
		}
		b.postAll(t, a, receives)
		a.postAll(t, b, sends)
		for i := range count {
			require.NoError(t, b.await(t, a).Err)
			require.EqualValues(t, i, binary.BigEndian.Uint32(receives[i].Buf))
			require.NoError(t, a.await(t, b).Err)
		}
	})
}

func TestBatchingNeedsAnEnabledEndpoint(t *testing.T) {
	a, _ := stations(t, "sockets", fabric.TaggedMessages)
	e, err := a.domain.OpenEndpoint()
	require.NoError(t, err)
	require.ErrorIs(t, e.SetBatching(true), fabric.ErrInvalid)
	require.NoError(t, e.Close())
	require.ErrorIs(t, e.SetBatching(true), net.ErrClosed)
}

// Operations of several families, one after the other in one turn, all start by the end of
// it, also where some that follow are refused for what they are.
func TestBatchingAcrossFamilies(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages|fabric.Messages|fabric.RemoteMemory)
		require.NoError(t, a.e.SetBatching(true))
		memory, remote := shared(t, b, 64)
		const rounds = 8
		for round := range rounds {
			tagged, plain := make([]byte, 8), make([]byte, 8)
			for _, op := range []fabric.Op{
				{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 7, Buf: tagged},
				{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: plain},
			} {
				b.must(t, a, op)
			}
			word := func() []byte { return binary.BigEndian.AppendUint64(nil, uint64(round+1)) }
			ops := []fabric.Op{
				{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 7, Buf: word()},
				{Kind: fabric.OpWrite, Peer: a.peer, Remote: remote, Buf: word()},
				{Kind: fabric.OpSend, Peer: a.peer, Buf: word()},
				{Kind: fabric.OpWrite, Peer: a.peer, Remote: fabric.Remote{Address: remote.Address + 8, Key: remote.Key}, Buf: word()},
			}
			a.postAll(t, b, ops)
			// Nothing of these families is posted to start them.
			wrong := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: 77, Buf: word()}, {Kind: fabric.OpWrite, Peer: 77, Remote: remote, Buf: word()}}
			a.turn(t, wrong)
			require.Equal(t, []fabric.Result{fabric.Failed, fabric.Failed}, []fabric.Result{wrong[0].Result, wrong[1].Result})
			for range ops {
				require.NoError(t, a.await(t, b).Err)
			}
			for range 2 {
				require.NoError(t, b.await(t, a).Err)
			}
			require.Equal(t, word(), tagged)
			require.Equal(t, word(), plain)
			written := string(word()) + string(word())
			for deadline := time.Now().Add(time.Minute); string(memory[:16]) != written; b.turn(t, nil) {
				require.True(t, time.Now().Before(deadline), "a write did not start")
			}
		}
	})
}
