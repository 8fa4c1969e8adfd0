//go:build linux

package fabric

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// socketName is where a socket is, or its peer.
type socketName = unix.Sockaddr

// accepted are connections that were made to an address: sockets that this
// process has there, but for the one that listens. tcp of libfabric 1.17 and 2.1, and net,
// forget those that it has accepted and not heard of yet (the peer has connected,
// and has not said who it is) when what listens is closed: their descriptors stay,
// or what comes in later is looked at with memory that is gone.
type accepted map[int]uint64 // inodes by descriptor

// acceptedAt lists the connections to an address, and says whether something
// listens there: if not, or if that is what the address is of, nobody else in
// this process has one of them. mine says of a peer's address that its
// connection is not meant.
func acceptedAt(name []byte, mine func(peer socketName) bool) (list accepted, listening bool) {
	list = make(accepted)
	eachSocket(func(fd int) {
		at, listens := streamAt(fd, name)
		listening = listening || listens
		if !at || listens {
			return
		}
		peer, err := unix.Getpeername(fd)
		if err != nil || (mine != nil && mine(peer)) {
			return
		}
		if inode := inodeOf(fd); inode != 0 {
			list[fd] = inode
		}
	})
	return list, listening
}

// stopListening has nobody else accepted at an address.
func stopListening(name []byte) {
	eachSocket(func(fd int) {
		if at, listens := streamAt(fd, name); at && listens {
			_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		}
	})
}

// acceptedBy lists the connections of an endpoint, which all end with it.
func acceptedBy(e *Endpoint) accepted {
	// Contexts and connected endpoints listen to nobody, and have no vector.
	if name := core(e.provider); e.turn == nil || name != "tcp" && name != "net" || !e.hasVector() {
		return nil
	}
	name, code := e.raw.Name()
	if code != 0 {
		return nil
	}
	list, _ := acceptedAt(name, nil)
	return list
}

// shutDown ends the connections, so that whoever looks after them does away
// with them; look makes it look.
func (a accepted) shutDown(look func()) {
	for fd := range a {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	}
	// Bounded: it may be none of those that libfabric looks after.
	for range 100 {
		for fd, inode := range a {
			if inodeOf(fd) != inode {
				delete(a, fd)
			}
		}
		if len(a) == 0 {
			return
		}
		look()
	}
}

// closeLeft closes those that are still there after the endpoint was closed:
// what libfabric has closed is gone, or its descriptor stands for another file.
func (a accepted) closeLeft() {
	for fd, inode := range a {
		if inodeOf(fd) == inode {
			_ = unix.Close(fd)
		}
	}
}

func inodeOf(fd int) uint64 {
	var s unix.Stat_t
	if unix.Fstat(fd, &s) != nil {
		return 0
	}
	return s.Ino
}

// streamAt says whether a descriptor is a stream's socket at an endpoint's address,
// and whether it listens there.
func streamAt(fd int, name []byte) (at, listens bool) {
	local, err := unix.Getsockname(fd)
	if err != nil || !isAt(local, name) || !isStream(fd) {
		return false, false
	}
	accepts, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil, err == nil && accepts != 0
}

// isAt says whether a socket is at an endpoint's address, which may be that of
// all interfaces.
func isAt(local unix.Sockaddr, name []byte) bool {
	var port int
	var host []byte
	switch s := local.(type) {
	case *unix.SockaddrInet4:
		port, host = s.Port, s.Addr[:]
	case *unix.SockaddrInet6:
		port, host = s.Port, s.Addr[:]
	}
	var at []byte
	switch len(name) {
	case unix.SizeofSockaddrInet4:
		at = name[4:8]
	case unix.SizeofSockaddrInet6:
		at = name[8:24]
	default:
		return false
	}
	// The port is in the order of the network.
	return port == int(name[2])<<8|int(name[3]) && (bytes.Equal(host, at) || bytes.Equal(at, make([]byte, len(at))))
}
