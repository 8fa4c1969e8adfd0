package collective

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// shared is memory without a name in any file system, so that nothing of it is left by whoever
// is killed. Processes of the same user map it by the descriptor of the one that has made it.
type shared struct{ descriptor int }

// sealed: it stays as long as it is, so that who has mapped it can look at all of it for ever.
const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

func newShared(size int) (s *shared, memory []byte, err error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	descriptor, err := unix.MemfdCreate(sharedName, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		// Linux does not know the flag before 6.3, and can be set to want it after that
		// (vm.memfd_noexec).
		descriptor, err = unix.MemfdCreate(sharedName, flags)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("collective: memfd_create: %w", err)
	}
	s = &shared{descriptor}
	// All of it is there from the beginning: later on, a system without memory would end whoever
	// touches it.
	for {
		if err = unix.Fallocate(descriptor, 0, 0, int64(size)); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		if _, err = unix.FcntlInt(uintptr(descriptor), unix.F_ADD_SEALS, sealed); err == nil {
			memory, err = unix.Mmap(descriptor, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("collective: %d bytes of shared memory: %w", size, err), s.close())
	}
	return s, memory, nil
}

// name is what another process calls it by.
func (s *shared) name() (process, descriptor uint64) {
	return uint64(os.Getpid()), uint64(s.descriptor)
}

func (s *shared) close() error { return unix.Close(s.descriptor) }

// mapShared maps shared memory of another process. What else may be behind the name is not
// touched.
func mapShared(process, descriptor uint64, size int) ([]byte, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", process, descriptor)
	if to, err := os.Readlink(path); err != nil {
		return nil, err
	} else if !strings.HasPrefix(to, "/memfd:"+sharedName) {
		return nil, fmt.Errorf("collective: %s is %s", path, to)
	}
	mine, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("collective: %s: %w", path, err)
	}
	defer unix.Close(mine)
	var is unix.Stat_t
	if err := unix.Fstat(mine, &is); err != nil {
		return nil, err
	}
	if seals, err := unix.FcntlInt(uintptr(mine), unix.F_GET_SEALS, 0); err != nil || seals&sealed != sealed || is.Size != int64(size) {
		return nil, fmt.Errorf("collective: %s has %d bytes and seals %#x, want %d and %#x", path, is.Size, seals, size, sealed)
	}
	return unix.Mmap(mine, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapShared(memory []byte) error { return unix.Munmap(memory) }
