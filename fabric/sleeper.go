package fabric

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper is how a port waits.
type sleeper interface {
	wait(timeout time.Duration)
	wake()
	active()
	close()
}

func newSleeper(fd int, spin bool) (sleeper, error) {
	if fd < 0 {
		return newNapper()
	}
	return newPoller(fd, spin)
}

// poller waits for a descriptor in Go's network poller.
//
// Where turns are taken without waiting, the descriptor itself is not in there:
// it becomes readable with every completion, and each time a thread of the
// runtime would wake up for nobody. It is in a set of its own, armed for one
// event by each wait, and the set is in the network poller.
type poller struct {
	fd    int      // of the completion queue, which owns it, if there is a set
	file  *os.File // of the set, or a duplicate of the queue's
	raw   syscall.RawConn
	ready func(fd uintptr) bool
	woken atomic.Bool
}

func newPoller(fd int, spin bool) (*poller, error) {
	w := &poller{fd: fd}
	polled, err := w.polled(fd, spin)
	if err != nil {
		return nil, systemError("wait descriptor", err)
	}
	// os.NewFile gives a file to the network poller if it does not block.
	if err := unix.SetNonblock(polled, true); err != nil {
		unix.Close(polled)
		return nil, systemError("wait descriptor", err)
	}
	w.file = os.NewFile(uintptr(polled), "wait descriptor")
	w.raw, err = w.file.SyscallConn()
	if err == nil {
		err = w.file.SetReadDeadline(time.Time{})
	}
	if err != nil {
		w.file.Close()
		return nil, systemError("wait descriptor", err)
	}
	return w, nil
}

// polled makes the descriptor for the network poller, which closes its own.
func (w *poller) polled(fd int, spin bool) (int, error) {
	if !spin {
		w.ready = readable
		return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	w.ready = w.readableSet
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, err
	}
	if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT}); err != nil {
		unix.Close(set)
		return -1, err
	}
	return set, nil
}

func (w *poller) wait(timeout time.Duration) {
	// The deadline comes before the look at woken, and wake sets woken before
	// the deadline: one of the two is always seen.
	if w.file.SetReadDeadline(time.Now().Add(timeout)) != nil || w.woken.Swap(false) {
		return
	}
	// An error is a deadline or a close, and the caller looks anyway.
	_ = w.raw.Read(w.ready)
	// Whoever has woken this wait has not woken the next one.
	w.woken.Store(false)
}

// readable looks at the descriptor itself: the network poller tells only of
// changes, and of none that came before.
func readable(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return n > 0 || (err != nil && err != unix.EINTR)
}

// readableSet is readable for a set, which it arms.
func (w *poller) readableSet(set uintptr) bool {
	armed := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}
	if unix.EpollCtl(int(set), unix.EPOLL_CTL_MOD, w.fd, &armed) != nil {
		return true
	}
	// To take the event is what disarms the set.
	var events [1]unix.EpollEvent
	n, err := unix.EpollWait(int(set), events[:], 0)
	return n > 0 || (err != nil && err != unix.EINTR)
}

func (w *poller) wake() {
	w.woken.Store(true)
	_ = w.file.SetReadDeadline(time.Unix(1, 0))
}

func (w *poller) active() {}
func (w *poller) close()  { w.file.Close() }

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

// Naps grow by an eighth, so that one of two sides that wait for each other is
// late by an eighth of what the other was at most, and not the more the longer
// it goes on. A waking costs some 50 us of processor time, and naps of longNap 1 %
// and more of a core: beyond that they grow on, to what costs half of it, but only
// by so little that what comes is late by a hundredth of what it took to come.
const (
	shortestNap = 20 * time.Microsecond
	longNap     = 4 * time.Millisecond
	longestNap  = 10 * time.Millisecond
	// Go's timers are not finer than this while the process is idle.
	timerNap = time.Millisecond
)

func longer(nap time.Duration) time.Duration {
	if nap < longNap {
		return min(nap+nap/8, longNap)
	}
	return min(nap+nap/100, longestNap)
}

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
