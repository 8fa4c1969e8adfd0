//go:build linux

package efa

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A device that its host has on the loopback interface alone is refused in words, whichever side
// has it: it would be looked for on the wrong host.
func TestPeerOnLoopback(t *testing.T) {
	for _, s := range settings {
		if s.Provider != "sockets" && s.Provider != "tcp" {
			continue
		}
		for _, onLoopback := range []string{"neither", "dialer", "listener"} {
			t.Run(s.Name+"/"+onLoopback, func(t *testing.T) {
				if inOwnNetwork(t) {
					return
				}
				b := newBed(t, s)
				givesBack(t)
				arguments := []string{b.Provider, "0.0.0.0:0", "wait"}
				if onLoopback == "listener" {
					arguments = append(arguments, "127.0.0.1")
				}
				peer := startProcessIn(t, func(a *syscall.SysProcAttr) { a.Cloneflags = unix.CLONE_NEWNET }, "peer", arguments...)
				a := goAway(t, peer.Process.Pid)
				peer.order(t, "listen")
				_, port, err := net.SplitHostPort(peer.hear(t, "listening"))
				require.NoError(t, err)
				c := &Config{Providers: []string{b.Provider}, Require: true, Logger: quiet, Source: a.here}
				if onLoopback == "dialer" {
					c.Source = "127.0.0.1"
				}
				conn, err := Dial(deadline(t), net.JoinHostPort(a.there, port), c)
				if onLoopback == "neither" {
					require.NoError(t, err)
					require.NoError(t, conn.Close())
					return
				}
				require.ErrorIs(t, err, ErrHandshake)
				require.ErrorContains(t, err, "127.0.0.1")
				require.ErrorContains(t, err, "Source")
			})
		}
	}
}
