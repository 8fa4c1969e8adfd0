package fabric_test

import (
	"encoding/binary"
	"os"
	"testing"
	"time"

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
		// One that has its descriptor is posted with nothing that has none.
		region, err := c.domain.RegisterMemory(fabric.RegionConfig{Access: fabric.AccessAll}, buf)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, region.Close()) })
		ops = []fabric.Op{
			{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: buf[:32], Descriptor: region.Descriptor(), Context: 1},
			{Kind: fabric.OpSend, Peer: peer, Buf: buf[32:], Descriptor: region.Descriptor(), Context: 2},
		}
		copy(buf[32:], "registered")
		_, err = p.e.Turn(ops, nil, 0)
		require.NoError(t, err)
		for _, op := range ops {
			require.Equal(t, fabric.Posted, op.Result, op.Err)
		}
		ended := 0
		require.Eventually(t, func() bool {
			completions := make([]fabric.Completion, len(ops))
			n, err := p.e.Turn(nil, completions, 0)
			require.NoError(t, err)
			for _, done := range completions[:n] {
				require.NoError(t, done.Err)
			}
			ended += n
			return ended == len(ops)
		}, time.Minute, time.Millisecond)
		require.Equal(t, "registered", string(buf[:len("registered")]))
	})
}

// Messages of many packets to a peer that ends fail once, and only they: the provider
// says so for each of their packets, also when others have their place already.
func TestPeerEndsAmidPackets(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		for range 10 {
			a, b := stations(t, "efa", fabric.TaggedMessages)
			f, d := partsOf(t, b.info)
			c := openStation(t, f, d, b.info)
			const lostOnes, lost, count = 8, 1000, 200
			toC := a.insert(t, c)
			c.insert(t, a)
			long := make([]byte, 1<<20)
			for i := range lostOnes {
				c.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, len(long))})
				a.must(t, c, fabric.Op{Kind: fabric.OpTaggedSend, Peer: toC, Tag: 1, Buf: long, Context: lost + uint64(i)})
			}
			for range 5 {
				a.turn(t, nil)
				c.turn(t, nil)
			}
			require.NoError(t, c.e.Close())
			failed, sent := make(map[uint64]int), 0
			look := func() {
				for _, done := range a.got {
					if done.Context >= lost {
						failed[done.Context]++
						continue
					}
					require.NoError(t, done.Err)
					sent++
				}
				a.got, b.got = nil, nil
			}
			for i := range count {
				b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, 8)})
				a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 2, Buf: make([]byte, 8), Context: uint64(i)})
				look()
			}
			for end := time.Now().Add(30 * time.Second); sent < count; look() {
				require.True(t, time.Now().Before(end), "%d sent", sent)
				a.turn(t, nil)
				b.turn(t, nil)
			}
			require.NotEmpty(t, failed)
			for context, times := range failed {
				require.Equal(t, 1, times, context)
			}
		}
	})
}

// A vector of libfabric 1.17 is for one endpoint there, and the second is told so.
func TestVectorOfOneEndpoint(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		a, _ := stations(t, "efa", fabric.Messages)
		e := endpointOf(t, a.domain)
		err := e.Enable(a.v, queueOf(t, a.domain, 64), a.events)
		if fabric.LibraryVersion().Major >= 2 && err == nil {
			return
		}
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		require.ErrorContains(t, err, "for one endpoint")
	})
}
