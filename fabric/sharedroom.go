//go:build linux

package fabric

import (
	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/cgo"
)

// sharedMemory is what an endpoint has in /dev/shm, with something beside it.
const sharedMemory = 17 << 20

// hasSharedMemory says whether an endpoint makes a file in /dev/shm when it is enabled.
func (e *Endpoint) hasSharedMemory() bool {
	return core(e.provider) == "shm" || e.hasInner() || looksAtNeighbours(e.provider) && e.Info().Endpoint() == ReliableDatagram
}

// sharedMemoryIsFull says that there is no room for an endpoint now.
func sharedMemoryIsFull() bool {
	var its unix.Statfs_t
	return unix.Statfs("/dev/shm", &its) == nil && its.Bavail*uint64(its.Bsize) < sharedMemory
}

// enableError is what becomes of an endpoint that libfabric has not enabled.
func (e *Endpoint) enableError(code cgo.Code) error {
	if code != cgo.NoSpace || !e.hasSharedMemory() {
		return fail("fi_enable", e.provider, int(code))
	}
	return &Error{
		Op: "fi_enable", Provider: e.provider, Errno: Errno(code),
		Detail: "an endpoint has 16 MiB in /dev/shm, and there is less left: containers have 64 MiB, unless they are told otherwise (docker run --shm-size)",
	}
}
