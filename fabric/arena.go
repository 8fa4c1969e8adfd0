package fabric

import (
	"strconv"
	"sync/atomic"
	"syscall"
)

// Arena is memory outside the Go heap, in whole pages, that stays where it is:
// for buffers that operations use without copying or pinning. Bytes may be used
// by anyone who keeps them apart; Close must come when nobody does any more.
type Arena struct {
	handle
	buf []byte
}

var arenaBytes atomic.Int64

// NewArena maps at least size bytes, zeroed.
func NewArena(size int) (*Arena, error) {
	const most = 1 << 40
	if size < 1 || size > most {
		return nil, &Error{Op: "arena", Errno: errnoInvalid, Detail: "an arena cannot have " + strconv.Itoa(size) + " bytes"}
	}
	page := syscall.Getpagesize()
	size = (size + page - 1) / page * page
	buf, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, systemError("mmap of "+strconv.Itoa(size)+" bytes", err)
	}
	a := &Arena{buf: buf}
	arenaBytes.Add(int64(size))
	a.open("arena", "")
	return a, nil
}

// Bytes is all of the arena's memory. It must not be used after Close.
func (a *Arena) Bytes() []byte { return a.buf }

// Close unmaps the memory.
func (a *Arena) Close() error {
	return a.close(func() error {
		if err := syscall.Munmap(a.buf); err != nil {
			return systemError("munmap", err)
		}
		arenaBytes.Add(-int64(len(a.buf)))
		a.buf = nil
		return nil
	})
}
