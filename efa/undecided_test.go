package efa

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A peer that has everything closes, and its endpoint goes before the device has heard
// that the last message has arrived: that it reports it as lost ends nothing.
func TestPeerClosesBeforeItsAnswer(t *testing.T) {
	for name, confirmed := range map[string]bool{"before the peer has confirmed it": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			o := newOrdering(t, Config{})
			r, c := o.from.reactor, o.from
			o.network.HoldCompletions(o.devices[0])
			outcome := make(chan error, 1)
			require.NoError(t, c.WriteMessageAsync(message(1, 1, 3000), func(err error) { outcome <- err }))
			_, err := o.to.ReadMessage(deadline(t), make([]byte, 4000))
			require.NoError(t, err)
			closed := make(chan error, 1)
			leading(r, func() {
				go func() { closed <- o.to.Close() }()
				takeInUntil(t, r, func() bool { return c.peerClosed })
				if confirmed {
					takeInUntil(t, r, func() bool { return c.acknowledged })
				}
				var sends []*operation
				for op := c.operations; op != nil; op = op.next {
					if op.purpose == messageSend {
						sends = append(sends, op)
					}
				}
				require.NotEmpty(t, sends)
				for _, op := range sends {
					r.completed(op, &fabric.Completion{Err: &fabric.Error{Op: "tagged send", Errno: fabric.Errno(syscall.ENOTCONN)}})
				}
				takeInUntil(t, r, func() bool { return c.acknowledged || c.failure != nil })
				require.NoError(t, c.failure)
				require.Empty(t, c.undecided)
				require.Zero(t, c.writes.Len())
			})
			require.NoError(t, <-closed)
			require.NoError(t, <-outcome)
			require.NoError(t, c.Close())
		})
	}
}

// takeInUntil takes in what has come on control connections; the caller leads.
func takeInUntil(t *testing.T, r *Reactor, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); runtime.Gosched() {
		require.Less(t, time.Since(begin), patience)
		r.takeIn()
	}
}
