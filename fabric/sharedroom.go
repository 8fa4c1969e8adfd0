//go:build linux

package fabric

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/cgo"
)

// sharedMemory is what an endpoint of shm has in /dev/shm, with something beside it.
const sharedMemory = 17 << 20

// hasShm says whether libfabric has shm: it looks once, whether there is room in /dev/shm. It is set when
// the providers are loaded.
var hasShm bool

// shmIsInside says whether an endpoint of efa makes one of shm when it is enabled.
func (e *Endpoint) shmIsInside() bool {
	return core(e.provider) == "efa" && e.Info().Endpoint() == ReliableDatagram && hasShm && hasNeighbours(e.provider)
}

// sharedRoom is a file in /dev/shm that keeps room for that of an endpoint of shm inside another.
type sharedRoom int

// noRoom is that of an endpoint that has none inside.
const noRoom sharedRoom = -1

// reserveRoom is for an endpoint that is about to be enabled. If the endpoint of shm inside cannot be,
// libfabric 2.1 ends the process, and 1.17 does not give the address vector back.
func (e *Endpoint) reserveRoom() (sharedRoom, error) {
	if !e.shmIsInside() {
		return noRoom, nil
	}
	fd, err := unix.Open("/dev/shm", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return noRoom, nil
	case err == nil:
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Fallocate(fd, 0, 0, sharedMemory)
		}
		if err == nil || errors.Is(err, unix.EOPNOTSUPP) {
			return sharedRoom(fd), nil
		}
		_ = unix.Close(fd)
	}
	var errno unix.Errno
	errors.As(err, &errno)
	return noRoom, e.enableError(cgo.Code(errno))
}

// enable is fi_enable in the place of the room.
func (r sharedRoom) enable(raw cgo.Endpoint) cgo.Code {
	if r == noRoom {
		return raw.Enable()
	}
	return raw.EnableInRoom(int(r))
}

func (r sharedRoom) release() {
	if r != noRoom {
		_ = unix.Close(int(r))
	}
}

// enableError is what becomes of an endpoint that libfabric has not enabled.
func (e *Endpoint) enableError(code cgo.Code) error {
	if code != cgo.NoSpace || core(e.provider) != "shm" && !e.shmIsInside() {
		return fail("fi_enable", e.provider, int(code))
	}
	return &Error{
		Op: "fi_enable", Provider: e.provider, Errno: Errno(code),
		Detail: "an endpoint has 16 MiB in /dev/shm, and there is less left: containers have 64 MiB, unless they are told otherwise (docker run --shm-size)",
	}
}
