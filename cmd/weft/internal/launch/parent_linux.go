package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// grouped has a process lead a group of its own, and end with this one.
func grouped() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adopt makes this process the parent of what has lost its own, so that inGroup can
// see the end of that.
func adopt() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}
