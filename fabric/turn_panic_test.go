//go:build linux

package fabric_test

import (
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/fabric"
)

// notThere are things in memory that ends the turn that looks at them: the first is there,
// and the others are not.
func notThere[T any](t *testing.T) []T {
	t.Helper()
	page := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(memory)) })
	require.NoError(t, unix.Mprotect(memory[page:], unix.PROT_NONE))
	size := int(unsafe.Sizeof(*new(T)))
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[page-size])), 2)
}

// panics requires that a turn does, and recovers.
func panics(t *testing.T, e *fabric.Endpoint, posts []fabric.Op, completions []fabric.Completion) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	require.Panics(t, func() { _, _ = e.Turn(posts, completions, 0) })
}

// After a turn that has panicked, and a recover, the endpoint goes on: nothing of what was
// not posted stays, and Close does not wait for the turn.
func TestTurnPanics(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		posts := notThere[fabric.Op](t)
		posts[0] = fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1}
		before := a.q.InFlight()
		panics(t, a.e, posts, nil)
		require.Equal(t, before, a.q.InFlight(), "an operation that was not posted has its slot")

		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: make([]byte, 8)})
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedSend, Peer: b.peer, Tag: 2, Buf: []byte("goes on")})
		require.NoError(t, a.await(t, b).Err)
		require.NoError(t, b.await(t, a).Err)

		panics(t, a.e, posts, nil)
		require.NoError(t, a.e.Close())
	})
}

// What only atomic operations look at does not matter to others, also if it is wrong.
func TestNeedlessAtomic(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		got := make([]byte, 8)
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: got})
		b.must(t, a, fabric.Op{
			Kind: fabric.OpTaggedSend, Peer: b.peer, Tag: 2, Vector: [][]byte{[]byte("need"), []byte("less")},
			Atomic: &fabric.Atomic{Type: 200},
		})
		require.NoError(t, a.await(t, b).Err)
		require.NoError(t, b.await(t, a).Err)
		require.Equal(t, "needless", string(got))
	})
}
