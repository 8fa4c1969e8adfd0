package efa

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMove(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	core := func() (c uint32) {
		_, _, _ = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&c)), 0, 0)
		return c
	}
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	moved := false
	for n := 0; n < 1000 && !moved; n++ {
		was := core()
		move()
		// The system may have taken it back.
		moved = core() != was
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil {
		t.Fatal(err)
	}
	if after != before {
		t.Errorf("it may run on %v, and on %v before it moved", after, before)
	}
	if !moved && before.Count() > 1 {
		t.Errorf("it is on the same core of %d after a thousand moves", before.Count())
	}
}
