//go:build linux

package efa

import (
	"net"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// yield lets other processes have the core.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// lone is what yielding takes while no other thread wants the core, the least of a few times, or 0 if each
// time another one had it; and how long it took to find out.
func lone() (spent, least time.Duration) {
	// Nobody looks at the queue meanwhile: where others keep the core for long, once is enough.
	const times, long = 8, 100 * time.Microsecond
	begin := time.Now()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for n := 0; n < times && time.Since(begin) < long; n++ {
		var before, after unix.Rusage
		if unix.Getrusage(unix.RUSAGE_THREAD, &before) != nil {
			break
		}
		start := time.Now()
		yield()
		took := time.Since(start)
		if unix.Getrusage(unix.RUSAGE_THREAD, &after) != nil {
			break
		}
		if after.Nvcsw == before.Nvcsw && after.Nivcsw == before.Nivcsw && (least == 0 || took < least) {
			least = took
		}
	}
	return time.Since(begin), least
}

// move has the thread go to another core than where it is, of those where it may run, and
// says how long that took.
func move() time.Duration {
	begin := time.Now()
	// Go would go on with this goroutine on another thread, and this one would never be
	// given its cores back.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return 0
	}
	var here uint32
	_, _, _ = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&here)), 0, 0)
	others := allowed
	others.Clear(int(here))
	// It is refused where there are no others, or by who watches over the process.
	if unix.SchedSetaffinity(0, &others) == nil {
		_ = unix.SchedSetaffinity(0, &allowed)
	}
	return time.Since(begin)
}

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
