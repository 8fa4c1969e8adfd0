//go:build linux

package fabric

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// links are the connections of an endpoint of sockets. They are in a set for epoll that
// is the endpoint's own. Who made them is not to be seen at a connection, nor whose a set
// is: so a connection is made to the endpoint that nobody else has, the first probe, and
// the set that it comes into is the one.
type links struct {
	set    int // the descriptor
	probes []probe
}

// probe is a connection to an endpoint that says nothing. Its end is the last that the
// endpoint's thread gets to see.
type probe struct {
	near, far int // the descriptor here, and that of the endpoint
}

// twoProbes: the thread looks twice at one until it is gone, first on behalf of what
// sends and then, maybe, of what receives. So by the end of the second it has looked at
// everything again, after the end of whatever was gone before the first.
const twoProbes = 2

// linksOf finds the connections of the endpoint with the name, or returns nil.
func linksOf(name []byte) *links {
	l := &links{set: -1}
	end := time.Now().Add(patienceWithThread)
	for range twoProbes {
		p := probe{near: connectTo(name), far: -1}
		for p.near >= 0 && !l.arrived(&p, name) && time.Now().Before(end) {
			time.Sleep(lookAgain)
		}
		l.probes = append(l.probes, p)
	}
	if l.probes[0].far >= 0 && l.probes[1].far >= 0 {
		return l
	}
	for _, p := range l.probes {
		if p.near >= 0 {
			_ = unix.Close(p.near)
		}
	}
	return nil
}

// connectTo makes a connection to an address of this host, and returns its descriptor or
// -1.
func connectTo(name []byte) int {
	var to unix.Sockaddr
	family := unix.AF_INET
	switch len(name) {
	case unix.SizeofSockaddrInet4:
		to = &unix.SockaddrInet4{Port: int(name[2])<<8 | int(name[3]), Addr: [4]byte(name[4:8])}
	case unix.SizeofSockaddrInet6:
		to = &unix.SockaddrInet6{
			Port: int(name[2])<<8 | int(name[3]), Addr: [16]byte(name[8:24]),
			ZoneId: uint32(name[24]) | uint32(name[25])<<8 | uint32(name[26])<<16 | uint32(name[27])<<24,
		}
		family = unix.AF_INET6
	default:
		return -1
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1
	}
	if err = unix.Connect(fd, to); errors.Is(err, unix.EINPROGRESS) {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if _, err = unix.Poll(ready, 1000); err == nil && ready[0].Revents != unix.POLLOUT {
			err = unix.ECONNREFUSED
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

// arrived says whether the endpoint has taken a probe.
func (l *links) arrived(p *probe, name []byte) bool {
	from, err := unix.Getsockname(p.near)
	if err != nil {
		return false
	}
	far := -1
	eachSocket(func(fd int) {
		if peer, err := unix.Getpeername(fd); err == nil && sameSocket(peer, from) {
			if at, listens := streamAt(fd, name); at && !listens {
				far = fd
			}
		}
	})
	if far < 0 {
		return false
	}
	in := func(set int) {
		// The domain has all in a set of its own, without saying whose.
		if m, ok := members(set)[far]; ok && m.data != 0 {
			l.set, p.far = set, far
		}
	}
	if l.set >= 0 {
		in(l.set)
	} else {
		eachSocket(in)
	}
	return p.far >= 0
}

func sameSocket(a, b unix.Sockaddr) bool {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		b, ok := b.(*unix.SockaddrInet4)
		return ok && a.Port == b.Port && a.Addr == b.Addr
	case *unix.SockaddrInet6:
		b, ok := b.(*unix.SockaddrInet6)
		return ok && a.Port == b.Port && a.Addr == b.Addr
	}
	return false
}

// member is what is in a set.
type member struct {
	inode uint64
	data  uintptr // what it was put there with, which says what it is; 0: nothing
}

// members are those of a set, by descriptor; none if it is no set.
func members(set int) map[int]member {
	if !isSet(set) {
		return nil
	}
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(set))
	if err != nil {
		return nil
	}
	all := make(map[int]member)
	for line := range bytes.Lines(text) {
		// tfd: 8 events: 19 data: 7f1c pos:0 ino:4c1d sdev:9
		words := bytes.Fields(line)
		if len(words) < 8 || string(words[0]) != "tfd:" {
			continue
		}
		fd, err := strconv.Atoi(string(words[1]))
		inode, ok := bytes.CutPrefix(words[7], []byte("ino:"))
		number, failed := strconv.ParseUint(string(inode), 16, 64)
		data, wrong := strconv.ParseUint(string(words[5]), 16, 64)
		if err == nil && ok && failed == nil && wrong == nil {
			all[fd] = member{inode: number, data: uintptr(data)}
		}
	}
	return all
}

// opening is for finding what an endpoint has made.
var opening sync.Mutex

// linksMade are those of an endpoint that open makes: its set is the one that is new. If
// several are, or none, it returns nil. It is for connected endpoints, whose address may be
// somebody else's, so that no probe comes to them.
func linksMade(open func()) *links {
	opening.Lock()
	defer opening.Unlock()
	before := sets()
	open()
	l := &links{set: -1}
	for set := range sets() {
		if _, old := before[set]; old {
			continue
		}
		if l.set >= 0 {
			return nil
		}
		l.set = set
	}
	if l.set < 0 {
		return nil
	}
	return l
}

// sets are all that this process has.
func sets() map[int]struct{} {
	all := make(map[int]struct{})
	eachSocket(func(fd int) {
		if isSet(fd) {
			all[fd] = struct{}{}
		}
	})
	return all
}

// alsoInDomain says whether a connection is in the set of a domain, as those of sockets
// are, and no others.
func alsoInDomain(fd int, inode uint64) (found bool) {
	eachSocket(func(set int) {
		m, ok := members(set)[fd]
		found = found || ok && m.data == 0 && m.inode == inode
	})
	return found
}

func isSet(fd int) bool {
	what, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return err == nil && what == "anon_inode:[eventpoll]"
}

// cut ends all connections but the probes, so that libfabric has nothing to read of them
// any more, and nothing to wait for. It returns how many libfabric still has.
func (l *links) cut() (left int) {
	for fd, m := range members(l.set) {
		if l.isProbe(fd) || len(l.probes) == 0 && !alsoInDomain(fd, m.inode) {
			continue
		}
		left++
		// By the time that it is shut down, the number may stand for another file of the
		// program. A descriptor of our own does not change.
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if inodeOf(own) == m.inode {
			_ = unix.Shutdown(own, unix.SHUT_RDWR)
			discard(own)
		}
		_ = unix.Close(own)
	}
	return left
}

// discard takes away what a connection that was shut down has received: sockets sees the
// end when it has read everything before it, and leaves what is for a context that is not
// there any more, or no whole header. All of it goes in one call, since sockets must not
// take the middle of a message for its beginning.
func discard(fd int) {
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil || n <= 0 {
		return
	}
	_, _, _ = unix.Recvfrom(fd, make([]byte, n), unix.MSG_DONTWAIT)
}

func (l *links) isProbe(fd int) bool {
	for _, p := range l.probes {
		if p.far == fd {
			return true
		}
	}
	return false
}

// acceptNoMore has nobody else accepted at an address, and before that the thread of sockets that
// accepts look at it no more. That it is shut down is an event for as long as it is there: the thread
// would go round without a rest, and have one in its hands when fi_close frees what that is about.
func acceptNoMore(name []byte) {
	eachSocket(func(fd int) {
		if at, listens := streamAt(fd, name); !at || !listens {
			return
		}
		eachSocket(func(set int) {
			if m, ok := members(set)[fd]; ok && m.data != 0 && m.inode == inodeOf(fd) {
				_ = unix.EpollCtl(set, unix.EPOLL_CTL_DEL, fd, nil)
			}
		})
	})
	stopListening(name)
}

// finish ends the probes, one after the other, until libfabric has seen it, which it says, or the
// time is over.
func (l *links) finish(end time.Time) bool {
	seen := true
	for i, p := range l.probes {
		_ = unix.Close(p.near)
		there := true
		for there && time.Now().Before(end) {
			if _, there = members(l.set)[p.far]; there {
				time.Sleep(lookAgain)
			}
		}
		seen = seen && !there
		// The number may be another connection's from here on.
		l.probes[i].far = -1
	}
	return seen
}
