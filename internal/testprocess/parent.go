//go:build linux

package testprocess

import (
	"os/exec"
	"syscall"
)

// endWithParent has a process killed when this one ends.
func endWithParent(p *exec.Cmd) {
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
