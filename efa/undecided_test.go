package efa

import (
	"fmt"
	"io"
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

// So it is of a write to its memory that it was to be told of, as the last that a
// collective puts: it closes once it has been told. Whoever is not told cannot be done
// with what the others write or read.
func TestPeerClosesBeforeItsMemoryAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		kind  fabric.OpKind
		flags fabric.OpFlags
		ends  bool
	}{
		"write that tells": {fabric.OpWrite, fabric.Immediate, true},
		"write":            {fabric.OpWrite, fabric.DeliveryComplete, false},
		"read":             {fabric.OpRead, 0, false},
	} {
		for when, until := range map[string]func(c *Conn) bool{
			"before it has confirmed all messages": func(c *Conn) bool { return c.peerClosed },
			"after that":                           func(c *Conn) bool { return c.acknowledged },
		} {
			t.Run(name+"/"+when, func(t *testing.T) {
				o := newOrdering(t, Config{})
				r, c := o.from.reactor, o.from
				closed := make(chan error, 1)
				s := make(told, 1)
				leading(r, func() {
					op := r.newOperation(c, remoteAccess)
					op.kind, op.flags, op.accessor = test.kind, test.flags, s
					go func() { closed <- o.to.Close() }()
					takeInUntil(t, r, func() bool { return until(c) })
					r.completed(op, &fabric.Completion{Err: &fabric.Error{Op: "write", Errno: fabric.Errno(syscall.ENOTCONN)}})
					takeInUntil(t, r, func() bool { return c.acknowledged })
				})
				require.NoError(t, <-closed)
				err := s.waitFor(t)
				if test.ends {
					require.NoError(t, err)
				} else {
					var fabricError *fabric.Error
					require.ErrorAs(t, err, &fabricError)
				}
				require.NoError(t, c.Close())
			})
		}
	}
}

// A peer that is gone after it has said that it closes, but not that it has everything, may have been killed: the
// write ends with that, whichever of the two is known first, though all messages were there.
func TestPeerIsLostBeforeItsMemoryAnswers(t *testing.T) {
	for name, end := range map[string]func(r *Reactor, c *Conn){
		"hung up": func(r *Reactor, c *Conn) { r.hangUp(c, io.EOF) },
		"failed":  func(r *Reactor, c *Conn) { r.fail(c, ErrPeerLost, nil) },
	} {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " first: ", first), func(t *testing.T) {
				o := newOrdering(t, Config{})
				r, c := o.from.reactor, o.from
				s := make(told, 1)
				leading(r, func() {
					op := r.newOperation(c, remoteAccess)
					op.kind, op.flags, op.accessor = fabric.OpWrite, fabric.Immediate, s
					r.finish(c, 0)
					if first {
						end(r, c)
					}
					r.completed(op, &fabric.Completion{Err: &fabric.Error{Op: "write", Errno: fabric.Errno(syscall.ENOTCONN)}})
					if !first {
						require.Empty(t, s)
						end(r, c)
					}
				})
				require.ErrorIs(t, s.waitFor(t), ErrPeerLost)
				require.NoError(t, o.to.CloseNow())
				require.NoError(t, c.CloseNow())
			})
		}
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
