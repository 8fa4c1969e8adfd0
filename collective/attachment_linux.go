package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attachment is another process of this host, to whose memory this one writes
// (process_vm_writev), or this process itself.
type attachment struct {
	process int
	life    int // a descriptor that has something to be read when the process has ended
	users   int // guarded by attachments
}

// attachments are those that are in use, by process: all communicators have the same, as each takes
// a descriptor.
var attachments = struct {
	sync.Mutex
	all map[int]*attachment
}{all: make(map[int]*attachment)}

// mostAtOnce is less than what the system moves in one call.
const mostAtOnce = 1 << 30

var errEnded = errors.New("collective: the process has ended")

// attach finds a process, which has to have the cookie at the address. Errors: those of the
// system, which may forbid all of it, and of a process that is not the one that was meant.
func attach(process, address, cookie uint64) (*attachment, error) {
	if process > math.MaxInt32 {
		return nil, fmt.Errorf("collective: process %d: %w", process, unix.ESRCH)
	}
	a, err := attachmentOf(int(process))
	if err != nil {
		return nil, err
	}
	if err := a.has(address, cookie); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func attachmentOf(process int) (*attachment, error) {
	attachments.Lock()
	defer attachments.Unlock()
	if a := attachments.all[process]; a != nil && a.lives() == nil {
		a.users++
		return a, nil
	}
	life, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return nil, fmt.Errorf("collective: pidfd_open of %d: %w", process, err)
	}
	// One before it that has ended is still closed by those who have it.
	a := &attachment{process: process, life: life, users: 1}
	attachments.all[process] = a
	return a, nil
}

// has is an error if there is something else at an address of the process.
func (a *attachment) has(address, cookie uint64) error {
	there := make([]byte, 8)
	mine, theirs := spanOf(there, address)
	n, err := unix.ProcessVMReadv(a.process, mine[:], theirs[:], 0)
	switch {
	case err != nil:
		return fmt.Errorf("collective: process_vm_readv of %d: %w", a.process, err)
	case n != len(there) || binary.LittleEndian.Uint64(there) != cookie:
		return fmt.Errorf("collective: process %d has something else at %#x", a.process, address)
	}
	// If not, it could have been another one with its number.
	return a.lives()
}

// write copies to the memory of the process. With an error some of it may be there.
func (a *attachment) write(address uint64, data []byte) error {
	if err := a.lives(); err != nil {
		return err
	}
	for len(data) > 0 {
		mine, theirs := spanOf(data[:min(len(data), mostAtOnce)], address)
		n, err := unix.ProcessVMWritev(a.process, mine[:], theirs[:], 0)
		if err == nil && n <= 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return fmt.Errorf("collective: process_vm_writev to %d: %w", a.process, err)
		}
		data, address = data[n:], address+uint64(n)
	}
	return nil
}

// lives is an error if the process has ended: then another may have its number.
func (a *attachment) lives() error {
	ended := [1]unix.PollFd{{Fd: int32(a.life), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(ended[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("collective: poll: %w", err)
		case n != 0:
			return errEnded
		default:
			return nil
		}
	}
}

func spanOf(data []byte, address uint64) (mine [1]unix.Iovec, theirs [1]unix.RemoteIovec) {
	mine[0].Base = unsafe.SliceData(data)
	mine[0].SetLen(len(data))
	theirs[0] = unix.RemoteIovec{Base: uintptr(address), Len: len(data)}
	return mine, theirs
}

// close ends one use.
func (a *attachment) close() error {
	attachments.Lock()
	defer attachments.Unlock()
	if a.users--; a.users > 0 {
		return nil
	}
	if attachments.all[a.process] == a {
		delete(attachments.all, a.process)
	}
	return unix.Close(a.life)
}
