//go:build linux

package keepalive

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// giveUpAfter is also for what was sent and has no answer, when the system does not
// ask. Linux goes by it alone where it is set, and not by the count.
func giveUpAfter(t *net.TCPConn, silence time.Duration) {
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence/time.Millisecond))
	})
}
