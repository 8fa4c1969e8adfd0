package bench

import "syscall"

// Grouped has a process lead a group of its own, where an interrupt of the terminal does
// not reach it, and end with this one.
func Grouped() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
