package fabric_test

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A provider's signal handlers do not come between the program and Go: a nil
// pointer is a panic that can be recovered from, and signals are notified.
func TestSignalsStayGos(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a := open(t, provider, fabric.PortConfig{})
		var nothing *struct{ x [4]int }
		require.Panics(t, func() { nothing.x[1]++ })
		got := make(chan os.Signal, 1)
		signal.Notify(got, syscall.SIGTERM)
		defer signal.Stop(got)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
		select {
		case s := <-got:
			require.Equal(t, syscall.SIGTERM, s)
		case <-time.After(30 * time.Second):
			t.Fatal("the signal did not come")
		}
		// And the port can still be reached: shm's own handler would have taken
		// its name away.
		b := open(t, provider, fabric.PortConfig{})
		to, err := b.Insert(a.LocalAddress())
		require.NoError(t, err)
		_, fromA := exchange(t, b, a,
			[]fabric.Op{{Kind: fabric.OpTaggedSend, Peer: to, Tag: 1, Buf: []byte("still there")}},
			[]fabric.Op{{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 20)}}, 1, 1)
		require.NoError(t, fromA[0].Err)
	})
}
