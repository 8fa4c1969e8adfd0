//go:build linux

package fabric_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
)

// On one core, the thread that receives is late, and the kernel's buffer is as
// full as it can be: a header that lies across two segments must not hold up both
// sides.
func TestFullBufferIsNotForEver(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	for core := range 1024 {
		if all.IsSet(core) {
			one.Set(core)
			break
		}
	}
	// The provider's threads begin where the one that makes them is.
	require.NoError(t, unix.SchedSetaffinity(0, &one))
	defer func() { require.NoError(t, unix.SchedSetaffinity(0, &all)) }()

	for i := range 40 {
		a, b := stations(t, "sockets", fabric.TaggedMessages)
		random := rand.New(rand.NewPCG(uint64(i), 1))
		if i%2 == 1 {
			// The connection is that of the one that will receive.
			a.must(t, b, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedSend, Peer: b.peer, Buf: make([]byte, 8)})
			require.NoError(t, a.await(t, b).Err)
			require.NoError(t, b.await(t, a).Err)
		}
		const count = 400
		var receives, sends []fabric.Op
		for range count {
			receives = append(receives, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8000)})
			sends = append(sends, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Buf: make([]byte, 1+random.IntN(8000))})
		}
		b.postAll(t, a, receives)
		a.postAll(t, b, sends)
		for deadline := time.Now().Add(30 * time.Second); len(b.got) < count; {
			require.True(t, time.Now().Before(deadline), "%d of %d, pair %d", len(b.got), count, i)
			a.turn(t, nil)
			var buf [32]fabric.Completion
			n, err := b.e.TurnWait(nil, buf[:], 10)
			require.NoError(t, err)
			b.got = append(b.got, buf[:n]...)
		}
	}
}

// Of peers that come and go, many of which connect from another port, nothing is
// left.
func TestNewcomersLeave(t *testing.T) {
	_, d := domainOf(t, "sockets", fabric.TaggedMessages)
	v := vectorOf(t, d)
	var peers []fabric.Address
	for port := range 200 {
		address := []byte{unix.AF_INET, 0, 0x40, byte(port), 127, 0, 0, 1, 15: 0}
		for range 1 + port%2 {
			peer, err := v.Insert(address)
			require.NoError(t, err)
			peers = append(peers, peer)
		}
	}
	require.Equal(t, 200, fabric.Newcomers(v))
	require.NoError(t, v.Remove(peers[0]))
	require.Equal(t, 199, fabric.Newcomers(v))
	require.NoError(t, v.RemoveAll(peers[1:]))
	require.Zero(t, fabric.Newcomers(v))
}

// Peers that are inserted by name are looked for as well, and leave as others do.
func TestNewcomersByName(t *testing.T) {
	_, d := domainOf(t, "sockets", fabric.TaggedMessages)
	v := vectorOf(t, d)
	peer, err := v.InsertService("127.0.0.1", "4000")
	require.NoError(t, err)
	require.Equal(t, 1, fabric.Newcomers(v))
	inserted, err := v.InsertSymmetric("127.0.0.1", 2, "4000", 3)
	require.NoError(t, err)
	require.Equal(t, 6, fabric.Newcomers(v), "the first of them is there already")
	peers := []fabric.Address{peer}
	for _, i := range inserted {
		require.NoError(t, i.Err)
		peers = append(peers, i.Address)
	}
	require.NoError(t, v.RemoveAll(peers))
	require.Zero(t, fabric.Newcomers(v))
	require.Zero(t, v.Len())
}
