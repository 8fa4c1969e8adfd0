// Package hostmemory is memory that processes of one host map. It has no name in any file system, so
// that nothing of it is left by whoever is killed: processes of the same user find it by the
// descriptor of the one that has made it, and it stays as long as it is, so that who has mapped it
// can look at all of it for ever. What is written there is for those who map it to agree on, and
// nothing that another process may have written can be trusted.
package hostmemory

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is memory of this process that others may map, until it is closed.
type Memory struct {
	// Bytes are zero at first.
	Bytes      []byte
	descriptor int
}

const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// New makes memory of so many bytes, which the system shows under the name. It takes a descriptor.
// Errors are those of the system.
func New(name string, size int) (*Memory, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	descriptor, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		// Linux does not know the flag before 6.3, and can be set to want it after that
		// (vm.memfd_noexec).
		descriptor, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	// All of it is there from the beginning: later on, a system without memory would end whoever
	// touches it.
	for {
		if err = unix.Fallocate(descriptor, 0, 0, int64(size)); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	m := &Memory{descriptor: descriptor}
	if err == nil {
		if _, err = unix.FcntlInt(uintptr(descriptor), unix.F_ADD_SEALS, sealed); err == nil {
			m.Bytes, err = unix.Mmap(descriptor, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%d bytes of shared memory: %w", size, err), unix.Close(descriptor))
	}
	return m, nil
}

// Name is what another process calls the memory by.
func (m *Memory) Name() (process, descriptor uint64) {
	return uint64(os.Getpid()), uint64(m.descriptor)
}

// Close ends the use of the memory here. Those who have mapped it keep it.
func (m *Memory) Close() error { return errors.Join(Unmap(m.Bytes), unix.Close(m.descriptor)) }

// Map maps the memory that a process has made with the name, of so many bytes. What else may be
// behind what it is called by is an error, and is not touched.
func Map(name string, process, descriptor uint64, size int) ([]byte, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", process, descriptor)
	if to, err := os.Readlink(path); err != nil {
		return nil, err
	} else if !strings.HasPrefix(to, "/memfd:"+name+" ") {
		return nil, fmt.Errorf("%s is %s", path, to)
	}
	mine, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(mine)
	var is unix.Stat_t
	if err := unix.Fstat(mine, &is); err != nil {
		return nil, err
	}
	if seals, err := unix.FcntlInt(uintptr(mine), unix.F_GET_SEALS, 0); err != nil || seals&sealed != sealed || is.Size != int64(size) {
		return nil, fmt.Errorf("%s has %d bytes and seals %#x, want %d and %#x", path, is.Size, seals, size, sealed)
	}
	// What is not there yet may not be to be had when it is touched.
	if is.Blocks*512 < int64(size) {
		return nil, fmt.Errorf("%s has memory for %d bytes, want %d", path, is.Blocks*512, size)
	}
	return unix.Mmap(mine, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// Unmap ends what Map began.
func Unmap(memory []byte) error { return unix.Munmap(memory) }
