//go:build linux

package efa

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watcher reads the control connections of a reactor, those that are plain TCP, on
// one goroutine: they say next to nothing, and the stack of a goroutine for each
// would be most of what an idle connection takes. They are in an epoll set, and that
// is in Go's network poller, so that no thread waits. The zero watcher is ready.
type watcher struct {
	mu     sync.Mutex
	conns  map[uint32]*Conn // by their ids
	set    *os.File         // nil before the first connection
	fd     int              // of set
	closed bool
	ended  chan struct{} // closed when the goroutine is gone
}

// add has a connection watched until it is over. If that is not possible, it says
// false: it is TLS, which has no way to read what is there and no more, or the
// system has no room for another set.
func (w *watcher) add(c *Conn) bool {
	tcp, ok := c.control.tcp.(*net.TCPConn)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.set == nil && w.open(c.reactor) != nil {
		return false
	}
	w.conns[c.id] = c
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.id)}
	err := onDescriptor(tcp, func(fd int) error { return unix.EpollCtl(w.fd, unix.EPOLL_CTL_ADD, fd, &event) })
	if err != nil {
		delete(w.conns, c.id)
	}
	return err == nil
}

// remove is called before the control connection is closed, and may be called again.
// The system would forget a descriptor that is closed, but not while a child
// process of the program has it, too.
func (w *watcher) remove(c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.conns[c.id] != c {
		return
	}
	delete(w.conns, c.id)
	_ = onDescriptor(c.control.tcp.(*net.TCPConn), func(fd int) error {
		return unix.EpollCtl(w.fd, unix.EPOLL_CTL_DEL, fd, nil)
	})
}

// onDescriptor calls f while the descriptor cannot be closed, and another one get
// its number.
func onDescriptor(tcp *net.TCPConn, f func(fd int) error) error {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = f(int(fd)) }); err != nil {
		return err
	}
	return result
}

// open makes the set and starts the goroutine.
func (w *watcher) open(r *Reactor) error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	// os.NewFile gives a file to the network poller if it does not block.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return err
	}
	set := os.NewFile(uintptr(fd), "control connections")
	raw, err := set.SyscallConn()
	if err == nil {
		err = set.SetReadDeadline(time.Time{})
	}
	if err != nil {
		set.Close()
		return err
	}
	w.conns, w.set, w.fd, w.ended = make(map[uint32]*Conn), set, fd, make(chan struct{})
	go w.run(r, raw)
	return nil
}

// close ends the watching. Connections that are added later are not taken.
func (w *watcher) close() {
	w.mu.Lock()
	w.closed = true
	if w.set != nil {
		w.set.Close()
	}
	w.mu.Unlock()
	if w.ended != nil {
		<-w.ended
	}
}

func (w *watcher) run(r *Reactor, set syscall.RawConn) {
	wear(r.labels.control)
	defer close(w.ended)
	var events [32]unix.EpollEvent
	buf := make([]byte, headerSize+mostBody)
	n := 0
	some := func(fd uintptr) bool {
		n, _ = unix.EpollWait(int(fd), events[:], 0)
		return n > 0
	}
	for set.Read(some) == nil {
		for _, e := range events[:n] {
			w.mu.Lock()
			c := w.conns[uint32(e.Fd)]
			w.mu.Unlock()
			// It may have ended since.
			if c != nil && !c.takeControl(buf) {
				w.remove(c)
			}
		}
	}
}

// takeControl takes in what the control connection has said, as much as goes into
// buf, which any frame does, and says whether there may be more.
func (c *Conn) takeControl(buf []byte) bool {
	k := c.control
	tcp := k.tcp.(*net.TCPConn)
	begun := copy(buf, k.begun)
	n := 0
	ended := onDescriptor(tcp, func(fd int) (err error) {
		n, err = unix.Read(fd, buf[begun:])
		return err
	})
	switch {
	case errors.Is(ended, unix.EAGAIN) || errors.Is(ended, unix.EINTR):
		return true
	case ended != nil:
		n = 0
		ended = &net.OpError{Op: "read", Net: "tcp", Source: tcp.LocalAddr(), Addr: tcp.RemoteAddr(), Err: ended}
	case n == 0:
		ended = io.EOF
	}
	var rest bytes.Reader
	for frames := buf[:begun+n]; ; frames = frames[len(frames)-rest.Len():] {
		rest.Reset(frames)
		t, count, err := k.read(&rest)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if ended == nil {
				k.begun = append([]byte(nil), frames...)
				return true
			}
			if !errors.Is(ended, io.EOF) {
				err = ended
			}
		}
		if !c.heard(t, count, err) {
			return false
		}
	}
}
