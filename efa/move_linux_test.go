package efa

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// Whoever has the core for itself finds out what a yield takes, and who shares it does not.
func TestLone(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	finds := func(want bool) {
		t.Helper()
		for begin := time.Now(); time.Since(begin) < patience; {
			if _, least := lone(); least > 0 == want {
				return
			}
		}
		t.Errorf("at no time is it so that it is alone: %v", want)
	}
	finds(true)
	core := 0
	for !all.IsSet(core) {
		core++
	}
	var one unix.CPUSet
	one.Set(core)
	keep := func() {
		// The threads end with their goroutines, which do not give them back.
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
	}
	var end atomic.Bool
	var both sync.WaitGroup
	ready := make(chan bool)
	both.Go(func() {
		keep()
		close(ready)
		for !end.Load() {
			yield()
		}
	})
	both.Go(func() {
		defer end.Store(true)
		<-ready
		keep()
		finds(false)
	})
	both.Wait()
}
