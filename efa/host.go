package efa

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// hostIdentity tells whether two processes could share memory: the same boot,
// the same /dev/shm and the same process ids. It is a hash, and the same for
// all such processes.
func hostIdentity() string {
	h := sha256.New()
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		h.Write(boot)
	} else if name, err := os.Hostname(); err == nil {
		h.Write([]byte(name))
	}
	if device, inode, ok := sharedMemory(); ok {
		_ = binary.Write(h, binary.LittleEndian, []uint64{device, inode})
	}
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		h.Write([]byte(ns))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// sourceFor returns the local address from which the peer's endpoint address is
// reached, if it is one of IPv4 or IPv6, and else that of the control
// connection.
func sourceFor(endpoint []byte, tcp net.Conn) string {
	if remote := udpAddress(endpoint); remote != nil {
		// Connecting a UDP socket only asks the routing table.
		if probe, err := net.DialUDP("udp", nil, remote); err == nil {
			defer probe.Close()
			if local, ok := probe.LocalAddr().(*net.UDPAddr); ok {
				return withZone(local.IP, local.Zone)
			}
		}
	}
	if local, ok := tcp.LocalAddr().(*net.TCPAddr); ok {
		return withZone(local.IP, local.Zone)
	}
	return ""
}

// unreachable returns the peer's endpoint address if it is a loopback address, and the control
// connection comes from elsewhere: a provider that finds no interface that is up takes that one.
func unreachable(endpoint []byte, control net.Conn) *net.UDPAddr {
	at := udpAddress(endpoint)
	here, ok := control.LocalAddr().(*net.TCPAddr)
	there, of := control.RemoteAddr().(*net.TCPAddr)
	// Whoever dials an address of this host does so from the same one.
	if at == nil || !ok || !of || !at.IP.IsLoopback() || there.IP.IsLoopback() || there.IP.Equal(here.IP) {
		return nil
	}
	return at
}

func withZone(ip net.IP, zone string) string {
	if zone != "" {
		return ip.String() + "%" + zone
	}
	return ip.String()
}

// The sizes of a struct sockaddr_in and sockaddr_in6.
const sizeofIPv4, sizeofIPv6 = 16, 28

// udpAddress reads a struct sockaddr_in or sockaddr_in6.
func udpAddress(b []byte) *net.UDPAddr {
	if len(b) < 4 {
		return nil
	}
	port := int(binary.BigEndian.Uint16(b[2:]))
	switch family := *(*uint16)(unsafe.Pointer(&b[0])); {
	case family == syscall.AF_INET && len(b) == sizeofIPv4:
		return &net.UDPAddr{IP: net.IP(b[4:8]), Port: port}
	case family == syscall.AF_INET6 && len(b) == sizeofIPv6:
		return &net.UDPAddr{IP: net.IP(b[8:24]), Port: port}
	}
	return nil
}
