//go:build linux

package efa

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/internal/testenv"
	"github.com/weft-go/weft/internal/testprocess"
)

// The control connection has the time that the Config says; see internal/keepalive.
func TestKeepAliveOptions(t *testing.T) {
	b := newBed(t, plain)
	one, other := b.connect(t, Config{PeerTimeout: 9 * time.Second})
	raw, err := one.control.tcp.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var got int
	var optionErr error
	require.NoError(t, raw.Control(func(fd uintptr) {
		got, optionErr = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}))
	require.NoError(t, optionErr)
	require.Equal(t, 7500, got)
	closeBoth(t, one, other)
}

// away is a link to a network of its own, in which a process is.
type away struct{ here, there, link string }

// goAway puts a process into a network of its own, and makes a link to it.
func goAway(t *testing.T, pid int) away {
	t.Helper()
	a := away{here: "10.213.0.1", there: "10.213.0.2", link: "weft"}
	peer := a.link + "p"
	for _, command := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "add", a.link, "type", "veth", "peer", "name", peer},
		{"ip", "link", "set", peer, "netns", strconv.Itoa(pid)},
		{"ip", "address", "add", a.here, "peer", a.there, "dev", a.link},
		{"ip", "link", "set", a.link, "up"},
		{"nsenter", "-t", strconv.Itoa(pid), "-n", "ip", "address", "add", a.there, "peer", a.here, "dev", peer},
		{"nsenter", "-t", strconv.Itoa(pid), "-n", "ip", "link", "set", "lo", "up"},
		{"nsenter", "-t", strconv.Itoa(pid), "-n", "ip", "link", "set", peer, "up"},
	} {
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		if err != nil {
			testenv.Need(t, "a network of its own", fmt.Errorf("%v: %w: %s", command, err, out))
		}
	}
	// It is up when both ends have noticed, and until then a provider does not take it.
	require.Eventually(t, func() bool {
		here, err := exec.Command("ip", "-oneline", "link", "show", a.link).Output()
		require.NoError(t, err)
		there, err := exec.Command("nsenter", "-t", strconv.Itoa(pid), "-n", "ip", "-oneline", "link", "show", peer).Output()
		require.NoError(t, err)
		return strings.Contains(string(here), "state UP") && strings.Contains(string(there), "state UP")
	}, time.Minute, 10*time.Millisecond)
	return a
}

// vanish takes the link down, as if the peer's host were gone.
func (a away) vanish(t *testing.T) {
	t.Helper()
	out, err := exec.Command("ip", "link", "set", a.link, "down").CombinedOutput()
	require.NoError(t, err, "%s", out)
	// Its address has no other way.
	out, err = exec.Command("ip", "route", "replace", "blackhole", a.there).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// inOwnNetwork runs a test again, in a process that has a network of its own, which ends
// with it. It is false in that process.
func inOwnNetwork(t *testing.T) bool {
	t.Helper()
	const there = "WEFT_TEST_OWN_NETWORK"
	if os.Getenv(there) != "" {
		return false
	}
	again := testprocess.Command(t, os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.count=1")
	again.Env = append(os.Environ(), there+"=1")
	again.SysProcAttr.Cloneflags = unix.CLONE_NEWNET
	out, err := again.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		testenv.Need(t, "a network of its own", err)
	}
	require.NoError(t, err, "%s", out)
	if strings.Contains(string(out), "--- SKIP") {
		testenv.Need(t, "a network of its own", errors.New(string(out)))
	}
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return true
}

// The host of a peer vanishes without a word: the connection ends all the same, on
// a side that only reads as on one that has something on its way.
func TestHostVanishes(t *testing.T) {
	for _, s := range settings {
		if s.Provider != "sockets" && s.Provider != "tcp" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if inOwnNetwork(t) {
				return
			}
			b := newBed(t, s)
			givesBack(t)
			peer := startProcessIn(t, func(a *syscall.SysProcAttr) { a.Cloneflags = unix.CLONE_NEWNET }, "peer", b.Provider, "0.0.0.0:0", "wait")
			a := goAway(t, peer.Process.Pid)
			peer.order(t, "listen")
			_, port, err := net.SplitHostPort(peer.hear(t, "listening"))
			require.NoError(t, err)
			c, err := (*mortal(&Config{Providers: []string{b.Provider}, Require: true, Logger: quiet, PeerTimeout: 4 * time.Second})).withDefaults()
			require.NoError(t, err)
			r, err := open(c, a.here)
			require.NoError(t, err)
			r.retain()
			defer func() { require.NoError(t, r.Close()) }()
			idle := asked(t, r, net.JoinHostPort(a.there, port), staysSilent)
			busy := asked(t, r, net.JoinHostPort(a.there, port), echoes)
			require.NoError(t, busy.WriteMessage(deadline(t), message(1, 0, 5000)))
			busy.expect(t, 1, 0, 1, 5000)
			begin := time.Now()
			a.vanish(t)
			require.NoError(t, busy.TrySend([]byte("x")))
			closed := make(chan error, 1)
			go func() { closed <- busy.Close() }()
			_, err = idle.ReadMessage(deadline(t), make([]byte, 1))
			require.ErrorIs(t, err, ErrPeerLost)
			t.Logf("noticed after %v: %v", time.Since(begin), err)
			require.ErrorIs(t, <-closed, ErrPeerLost)
			require.NoError(t, idle.CloseNow())
		})
	}
}
