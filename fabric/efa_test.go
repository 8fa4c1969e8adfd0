package fabric_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// onEFA runs a test where the efa provider is tested.
func onEFA(t *testing.T, test func(t *testing.T)) {
	each(t, func(t *testing.T, provider string) {
		if provider == "efa" {
			test(t)
		}
	})
}

// What is injected is what the buffer held then, also if the receiver was not ready
// and it is sent again.
func TestInjectOutlivesItsBuffer(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		a, b := stations(t, "efa", fabric.TaggedMessages)
		buf, into := make([]byte, 8), make([]byte, 8)
		for i := range uint64(16) {
			testenv.Order(t, os.Getpid(), "rnr 10")
			binary.BigEndian.PutUint64(buf, i)
			a.post(t, b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: i, Buf: buf})
			binary.BigEndian.PutUint64(buf, 1<<63)
			b.post(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: i, Buf: into})
			require.NoError(t, b.await(t, a).Err)
			require.Equal(t, i, binary.BigEndian.Uint64(into))
		}
	})
}

// The device's own endpoints would end the process.
func TestUnregisteredBufferForTheDevice(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		infos, err := fabric.Discover(fabric.Hints{
			Provider: "efa", Fabric: "efa-direct", Endpoint: fabric.ReliableDatagram,
			Capabilities: fabric.Messages, MemoryMode: everyMemoryMode,
		})
		if fabric.LibraryVersion().Major < 2 {
			require.ErrorIs(t, err, fabric.ErrNotFound)
			return
		}
		require.NoError(t, err)
		c := openCorner(t, infos[0])
		p, v := c.endpoint(t, infos[0], fabric.Bindings{Events: c.events})
		peer := insert(t, v, p.e)
		buf := make([]byte, 64)
		ops := []fabric.Op{
			{Kind: fabric.OpSend, Peer: peer, Buf: buf},
			{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: buf},
			{Kind: fabric.OpSend, Peer: peer, Vector: [][]byte{nil, buf}},
		}
		_, err = p.e.Turn(ops, nil, 0)
		require.NoError(t, err)
		for _, op := range ops {
			require.Equal(t, fabric.Failed, op.Result, op.Kind)
			require.ErrorIs(t, op.Err, fabric.ErrInvalid, op.Kind)
		}
	})
}
