//go:build linux

package fabric

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiveRoom is how much a connection of sockets can take in, in bytes.
//
// The provider looks at the header of a message, without taking it, until all 24
// bytes are there. What the kernel has put together counts as memory in use until
// the last byte of it is taken, and while that fills a connection's buffer, the
// peer may send nothing, the rest of the header included: both wait for good. A
// fresh connection has 128 KiB, and the kernel puts more than that together. Here
// is room for several times as much as it ever does.
const receiveRoom = 2 << 20

// makeRoom is for a socket that is connected, or whose connections inherit it. To
// ask for so much to wait for grows the buffer, where SO_RCVBUF is bound to a
// limit and keeps the kernel from growing it.
func makeRoom(fd int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, receiveRoom)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 1)
}

// makeRoomForCallers is for the connections that peers make to the endpoint.
func makeRoomForCallers(e *Endpoint) {
	name, code := e.raw.Name()
	if code != 0 {
		return
	}
	eachSocket(func(fd int) {
		if _, listens := streamAt(fd, name); listens {
			makeRoom(fd)
		}
	})
}

// newcomers are peers of an address vector to which a connection may still have
// to be found. Who connects to whom is up to the provider, and when; but there is
// no completion without a connection.
type newcomers struct {
	names map[portAndHost]struct{}
	// The next look is when so much has completed since the last peer came: after
	// many times as much each time, because some are never found.
	completed, next int
}

const lastLook = 1 << 20

func (n *newcomers) add(address []byte) {
	if n.names == nil {
		n.names = make(map[portAndHost]struct{})
	}
	n.names[portAndHostOf(address)] = struct{}{}
	n.completed, n.next = 0, 1
}

// remove is for a peer that is about to leave the vector.
func (n *newcomers) remove(v *AddressVector, peer Address) {
	var address [unix.SizeofSockaddrAny]byte
	length, code := v.raw.Lookup(uint64(peer), address[:])
	if code == 0 && length >= unix.SizeofSockaddrInet4 {
		delete(n.names, portAndHostOf(address[:min(length, len(address))]))
	}
}

// look makes room for what the newcomers send, once their connection is there. It
// is in the middle of a turn, and does not allocate.
func (n *newcomers) look(completed int) {
	if n.completed += completed; n.completed < n.next {
		return
	}
	if n.next = 8 * n.completed; n.next > lastLook {
		clear(n.names)
		return
	}
	eachSocket(func(fd int) {
		var peer [unix.SizeofSockaddrAny]byte
		length := uint32(len(peer))
		_, _, failed := unix.RawSyscall(unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(&peer)), uintptr(unsafe.Pointer(&length)))
		if family := family(peer[:]); failed != 0 || (family != unix.AF_INET && family != unix.AF_INET6) {
			return
		}
		name := portAndHostOf(peer[:min(length, uint32(len(peer)))])
		if _, ok := n.names[name]; ok {
			makeRoom(fd)
			delete(n.names, name)
		}
	})
}

// portAndHost is what identifies a sockaddr.
type portAndHost [2 + 16]byte

func portAndHostOf(name []byte) (p portAndHost) {
	if len(name) == unix.SizeofSockaddrInet6 {
		// The flow, between the two, may be anything.
		copy(p[:2], name[2:4])
		copy(p[2:], name[8:24])
	} else {
		copy(p[:], name[2:8])
	}
	return p
}
