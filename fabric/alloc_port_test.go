//go:build !asan

package fabric_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Neither a message nor an empty poll allocates, in the way of an engine.
func TestTurnDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, toB, _ := pair(t, provider)
		buf := make([]fabric.Completion, 8)
		message := make([]byte, 64)
		received := make([]byte, 64)
		send := []fabric.Op{{Kind: fabric.OpTaggedSend, Peer: toB, Buf: message}}
		receive := []fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: received}}
		var failure error
		one := func() {
			if _, err := b.Turn(receive, buf, 0); err != nil {
				failure = err
			}
			posted, sent, got := false, false, false
			for tries := 0; !(sent && got) && tries < 1e6; tries++ {
				var posts []fabric.Op
				if !posted {
					posts = send
				}
				n, err := a.Turn(posts, buf, 0)
				failure = errors.Join(failure, err)
				posted = posted || send[0].Result == fabric.Posted
				sent = sent || n == 1
				n, err = b.Turn(nil, buf, 0)
				failure = errors.Join(failure, err)
				got = got || n == 1
				if !(sent && got) && b.Arm() {
					b.Wait(time.Millisecond)
				}
			}
		}
		require.Zero(t, testing.AllocsPerRun(200, one))
		require.NoError(t, failure)
		require.Zero(t, testing.AllocsPerRun(200, func() { _, failure = a.Turn(nil, buf, 0) }), "empty poll")
		require.NoError(t, failure)
	})
}

// Neither does a wait, however it ends, nor what an engine asks of a port in
// between.
func TestPortDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b, toB, _ := pair(t, provider)
		received := make([]byte, 64)
		fromA, fromB := exchange(t, a, b,
			[]fabric.Op{{Kind: fabric.OpTaggedSend, Peer: toB, Buf: make([]byte, 64)}},
			[]fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: received}}, 1, 1)
		require.Len(t, append(fromA, fromB...), 2)
		var failed error
		requireFree(t, func() { a.Arm(); a.Wait(time.Microsecond) }, "short wait")
		requireFree(t, func() { a.Arm(); a.Wait(3 * time.Millisecond) }, "long wait")
		requireFree(t, func() { a.Wake(); a.Arm(); a.Wait(time.Minute) }, "wake and wait")
		requireFree(t, func() {
			_, _, _ = a.Attributes(), a.LocalAddress(), a.InFlight()
			failed = errors.Join(failed, a.Errors(), a.Cancel(fabric.Token(1)))
		}, "the rest")
		require.NoError(t, failed)
	})
}
