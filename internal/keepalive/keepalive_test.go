//go:build linux

package keepalive

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Whatever the timeout is, the last question that fits into it is the one after
// which the system gives up, and there are at least three.
func TestTimes(t *testing.T) {
	for timeout := Least; timeout <= 100*time.Second; timeout += 100 * time.Millisecond {
		every, silence := times(timeout)
		require.GreaterOrEqual(t, every, time.Second)
		require.Zero(t, every%time.Second)
		// The system looks when it asks, and gives up when it has been silence.
		asked := (silence + every - 1) / every
		require.LessOrEqual(t, asked*every, timeout, "%v", timeout)
		require.GreaterOrEqual(t, (asked+1)*every, timeout, "%v", timeout)
		require.GreaterOrEqual(t, int(asked), 3)
		// And where only the count counts.
		require.LessOrEqual(t, every+every*questions, timeout, "%v", timeout)
	}
}

// The system has been told.
func TestSet(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	Set(conn, 9*time.Second)
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		for _, o := range []struct{ level, name, want int }{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 2},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 2},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 7500},
		} {
			got, err := unix.GetsockoptInt(int(fd), o.level, o.name)
			if err != nil || got != o.want {
				t.Errorf("option %d: %d, %v", o.name, got, err)
			}
		}
	}))
}

// What is not TCP is left alone.
func TestSetOnPipe(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	defer here.Close()
	Set(here, Least)
}
