//go:build linux

package bootstrap

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The system finds hosts that vanish: it asks, and it gives up in time.
func TestKeepAlive(t *testing.T) {
	_, address := serveTCP(t, 1, nil)
	k, err := connectRank(t, address, Member{Size: 1}, nil)
	require.NoError(t, err)
	raw, err := k.conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	option := func(level, name int) (value int) {
		require.NoError(t, raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), level, name) }))
		require.NoError(t, err)
		return value
	}
	silence := option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	require.Equal(t, 1, option(unix.SOL_SOCKET, unix.SO_KEEPALIVE))
	// Less than the timeout.
	require.Less(t, silence, int(shortTimeout.Milliseconds()))
	require.Greater(t, silence, int(shortTimeout.Milliseconds())/2)
}
