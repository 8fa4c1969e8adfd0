package fabric_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// Whoever asks for what it may not have, however often, does not fill the memory of a program
// that does not read its events; and that hears of it again once it does.
func TestUnreadErrorsAreFew(t *testing.T) {
	onEFA(t, func(t *testing.T) {
		a, b := stations(t, "efa", fabric.Messages|fabric.RemoteMemory|fabric.Atomics)
		op := fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: make([]byte, 8), Flags: fabric.DeliveryComplete}
		if !a.asksPeer(t, &op) {
			return // nothing that the device refuses comes to the target
		}
		_, op.Remote = shared(t, b, 100)
		op.Remote.Key += 1000
		const kept, more = 1024, 100
		all := func(count int) {
			for range count {
				a.must(t, b, op)
			}
		}
		read := func() (count int) {
			for {
				_, ok, err := b.events.Read()
				if !ok {
					require.NoError(t, err)
					return count
				}
				require.ErrorIs(t, err, syscall.EACCES)
				count++
			}
		}
		heard := func(count int, dropped uint64) {
			t.Helper()
			got := 0
			require.Eventually(t, func() bool {
				a.turn(t, nil)
				b.turn(t, nil)
				got += read()
				return got >= count
			}, 30*time.Second, time.Millisecond)
			require.Equal(t, count, got)
			require.Equal(t, dropped, b.events.Dropped())
		}
		all(1)
		heard(1, 0)
		all(kept + more)
		require.Eventually(t, func() bool {
			a.turn(t, nil)
			b.turn(t, nil)
			return b.events.Dropped() == more
		}, 30*time.Second, time.Millisecond)
		heard(kept, more)
		all(3)
		heard(3, more)
		require.NoError(t, errors.Join(a.goesOn(t, b), b.goesOn(t, a)))
	})
}
