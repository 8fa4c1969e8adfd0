//go:build linux

package efa

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// yield lets other processes have the core.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// sharedMemory identifies what /dev/shm is.
func sharedMemory() (device, inode uint64, ok bool) {
	var st syscall.Stat_t
	err := syscall.Stat("/dev/shm", &st)
	return st.Dev, st.Ino, err == nil
}

// unread says that the system has something from the peer.
func unread(tcp net.Conn) (there bool) {
	s, ok := tcp.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	// Not Read, which would wait for the one who reads.
	err = raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		there = err == nil && n > 0
	})
	return there && err == nil
}
