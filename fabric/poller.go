//go:build linux

package fabric

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

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
