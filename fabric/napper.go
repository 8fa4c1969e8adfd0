//go:build linux

package fabric

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// napper waits where there is nothing to wait on: in naps that grow while
// nothing happens. Longer ones end by a timer of the system's in Go's network poller:
// one of Go's wakes several threads each time that it ends.
type napper struct {
	timer  *os.File
	raw    syscall.RawConn
	set    func(fd uintptr) // to nap
	ring   func(fd uintptr) // to end at once
	nap    time.Duration
	next   time.Duration
	expiry [8]byte
	busy   atomic.Bool
	woken  atomic.Bool
	timed  atomic.Bool // the timer matters
}

func newNapper() (*napper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, systemError("timer", err)
	}
	n := &napper{next: shortestNap, timer: os.NewFile(uintptr(fd), "timer")}
	n.set = func(fd uintptr) { setTimer(fd, n.nap) }
	n.ring = func(fd uintptr) { setTimer(fd, 1) }
	if n.raw, err = n.timer.SyscallConn(); err == nil {
		err = n.timer.SetReadDeadline(time.Time{})
	}
	if err != nil {
		n.timer.Close()
		return nil, systemError("timer", err)
	}
	return n, nil
}

// setTimer has a timer end once, after d, whatever it was set to before.
func setTimer(fd uintptr, d time.Duration) {
	// It fails for no time that is not negative.
	_ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
}

func (n *napper) wait(timeout time.Duration) {
	if n.busy.Swap(false) {
		n.next = shortestNap
	}
	n.nap = min(n.next, timeout)
	n.next = longer(n.next)
	if n.nap < timerNap {
		if !n.woken.Swap(false) {
			doze(n.nap)
		}
		return
	}
	// What is set here comes before the look at woken, and wake sets woken first: one
	// of the two is always seen.
	n.timed.Store(true)
	if n.raw.Control(n.set) == nil && !n.woken.Swap(false) {
		// An error is a close, and the caller looks anyway.
		_, _ = n.timer.Read(n.expiry[:])
		n.woken.Store(false)
	}
	n.timed.Store(false)
}

func (n *napper) wake() {
	n.active()
	n.woken.Store(true)
	if n.timed.Load() {
		_ = n.raw.Control(n.ring)
	}
}

func (n *napper) active() {
	if !n.busy.Load() {
		n.busy.Store(true)
	}
}

func (n *napper) close() { n.timer.Close() }

// doze sleeps, and for less than timerNap with the thread, which is exact.
func doze(nap time.Duration) {
	if nap >= timerNap {
		time.Sleep(nap)
		return
	}
	t := unix.NsecToTimespec(int64(nap))
	// A signal ends it early, which is as good.
	_ = unix.Nanosleep(&t, nil)
}
