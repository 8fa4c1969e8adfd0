package fabric_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// shared is memory of b's that a may read and write, and how a names it.
func shared(t *testing.T, b *station, size int) ([]byte, fabric.Remote) {
	t.Helper()
	arena, err := fabric.NewArena(size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, arena.Close()) })
	region, err := b.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessRemoteRead | fabric.AccessRemoteWrite}, arena.Bytes()[:size])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, region.Close()) })
	remote, err := region.RemoteOf(arena.Bytes()[:size])
	require.NoError(t, err)
	return arena.Bytes()[:size], remote
}

func TestReadAndWrite(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory)
		const size = 1 << 20
		memory, remote := shared(t, b, size)
		for _, n := range []int{1, 8, 100, 4096, 70000, size} {
			at := (size - n) / 2
			there := fabric.Remote{Address: remote.Address + uint64(at), Key: remote.Key}
			want := bytes.Repeat([]byte{byte(n), 3, 5}, n/3+1)[:n]
			a.must(t, b, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: want, Remote: there, Flags: fabric.DeliveryComplete, Context: 1})
			c := a.await(t, b)
			require.NoError(t, c.Err)
			require.EqualValues(t, 1, c.Context)
			require.True(t, bytes.Equal(want, memory[at:at+n]), "%d bytes written", n)

			got := make([]byte, n)
			a.must(t, b, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: got, Remote: there, Context: 2})
			c = a.await(t, b)
			require.NoError(t, c.Err)
			require.EqualValues(t, 2, c.Context)
			require.True(t, bytes.Equal(want, got), "%d bytes read", n)

			first, second := make([]byte, n/2), make([]byte, n-n/2)
			a.must(t, b, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Vector: [][]byte{first, second}, Remote: there})
			require.NoError(t, a.await(t, b).Err)
			require.True(t, bytes.Equal(want, append(first, second...)), "%d bytes read into two", n)
		}
		require.Zero(t, a.q.InFlight())
	})
}

// A write with an immediate is announced at the target, which posted nothing.
func TestWriteWithImmediate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory)
		memory, remote := shared(t, b, 4096)
		for i, op := range []fabric.Op{
			{Kind: fabric.OpWrite, Buf: []byte("plain")},
			{Kind: fabric.OpWriteInject, Buf: []byte("inject")},
			{Kind: fabric.OpWrite, Flags: fabric.TransmitComplete, Buf: []byte("message form")},
		} {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				op.Peer, op.Remote, op.Immediate = a.peer, remote, uint64(1000+i)
				op.Flags |= fabric.Immediate
				a.must(t, b, op)
				c := b.await(t, a)
				require.NoError(t, c.Err)
				require.Equal(t, fabric.OpRemoteWrite, c.Kind)
				require.True(t, c.HasImmediate)
				require.EqualValues(t, 1000+i, c.Immediate)
				require.Equal(t, string(op.Buf), string(memory[:len(op.Buf)]))
				if op.Kind == fabric.OpWrite {
					require.NoError(t, a.await(t, b).Err)
				}
			})
		}
	})
}

func TestInjectedWrite(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.RemoteMemory)
		memory, remote := shared(t, b, 64)
		a.must(t, b, fabric.Op{Kind: fabric.OpWriteInject, Peer: a.peer, Buf: []byte("injected"), Remote: remote})
		// A read behind it sees it, once it is there.
		got := make([]byte, 8)
		for string(got) != "injected" {
			a.must(t, b, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: got, Remote: remote})
			require.NoError(t, a.await(t, b).Err)
		}
		require.Equal(t, "injected", string(memory[:8]))
	})
}
