//go:build !windows

package fabrictest

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// readable waits for a descriptor.
func readable(t *trial, fd int) {
	t.Helper()
	for deadline := time.Now().Add(t.provider.Patience); ; {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline)).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		noError(t, err)
		equal(t, 1, n, "something is there, and the descriptor does not say so")
		equal(t, int16(unix.POLLIN), fds[0].Revents)
		return
	}
}
