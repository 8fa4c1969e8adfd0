//go:build linux

package fabric

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// eachSocket calls f with each socket of this process, and others of its
// descriptors. It allocates no more than a path. Without /proc there are none that
// anybody could find.
func eachSocket(f func(fd int)) {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	var buf [4096]byte
	for {
		n, err := unix.ReadDirent(dir, buf[:])
		if err != nil || n <= 0 {
			return
		}
		for entries := buf[:n]; len(entries) > direntName; {
			length := min(int(binary.NativeEndian.Uint16(entries[direntLength:])), len(entries))
			if length <= direntName {
				return
			}
			if fd, ok := number(entries[direntName:length]); ok {
				f(fd)
			}
			entries = entries[length:]
		}
	}
}

// Where a struct linux_dirent64 has its length and its name.
const direntLength, direntName = 16, 19

// isStream says whether a socket is one that can listen or be connected to: others
// may have the same address and port.
func isStream(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_STREAM
}

// number reads a decimal number that ends with a zero byte.
func number(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c == 0 {
			return n, ok
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		n, ok = 10*n+int(c-'0'), true
	}
	return 0, false
}
