//go:build linux

package fabric

import (
	"errors"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leastHuge is the size of a transparent huge page, and of the least arena that has some unasked.
const leastHuge = 2 << 20

func mapArena(size int, pages Pages) (*Arena, error) {
	unit, flags, slack := unix.Getpagesize(), unix.MAP_ANON|unix.MAP_PRIVATE, 0
	length := (size + unit - 1) / unit * unit
	switch pages {
	case SuitablePages, TransparentHugePages:
		if pages == TransparentHugePages || length >= leastHuge {
			// Only what is aligned can be a huge page.
			unit, slack = leastHuge, leastHuge
		}
	case HugePages2M:
		unit, flags = 2<<20, flags|unix.MAP_HUGETLB|unix.MAP_HUGE_2MB
	case HugePages1G:
		unit, flags = 1<<30, flags|unix.MAP_HUGETLB|unix.MAP_HUGE_1GB
	}
	size = (size + unit - 1) / unit * unit
	mapped, err := unix.Mmap(-1, 0, size+slack, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, mapError(size, pages, err)
	}
	skip := 0
	if slack > 0 {
		skip = -int(uintptr(unsafe.Pointer(&mapped[0]))) & (unit - 1)
	}
	if pages != SuitablePages {
		length = size
	}
	return &Arena{
		buf: mapped[skip : skip+length : skip+length], pages: mapped[skip : skip+size], mapped: mapped,
		taken: size, // alignment costs addresses, and no memory
	}, nil
}

func mapError(size int, pages Pages, err error) error {
	e := systemError("mmap of "+strconv.Itoa(size)+" bytes", err)
	if pages == HugePages2M || pages == HugePages1G {
		e = withDetail(e, "the kernel has too few huge pages of this size: see /sys/kernel/mm/hugepages")
	}
	return e
}

// unmap gives memory back to the system.
func unmap(mapped []byte) error { return unix.Munmap(mapped) }

// vacate gives the memory back, and keeps its addresses: there is other memory, that
// nobody has. It is one step, so that nothing else can come in between.
func vacate(mapped []byte) error {
	const flags = unix.MAP_ANON | unix.MAP_PRIVATE | unix.MAP_FIXED | unix.MAP_NORESERVE
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&mapped[0]), uintptr(len(mapped)), unix.PROT_READ|unix.PROT_WRITE, flags)
	return err
}

// settle does to the pages what the config asks for.
func (a *Arena) settle(c ArenaConfig) error {
	switch c.Pages {
	case SuitablePages:
		if len(a.buf) >= leastHuge {
			// Without them, the arena is as good as one of ordinary pages.
			_ = unix.Madvise(a.pages, unix.MADV_HUGEPAGE)
		}
	case TransparentHugePages:
		if err := unix.Madvise(a.buf, unix.MADV_HUGEPAGE); err != nil {
			return notHere(systemError("madvise for huge pages", err), "this kernel has no transparent huge pages")
		}
	}
	if c.Node != nil {
		if err := a.bindTo(*c.Node); err != nil {
			return err
		}
		if c.Pages == HugePages2M || c.Pages == HugePages1G {
			// Pages that were set aside on other nodes do not help, and that
			// would show only when the memory is touched, as a SIGBUS.
			if err := unix.Madvise(a.buf, unix.MADV_POPULATE_WRITE); err != nil {
				return withDetail(systemError("madvise to provide pages", err), "too few huge pages of this size on node "+strconv.Itoa(*c.Node))
			}
		}
	}
	if c.Locked {
		// What is beyond is not asked for, and there is a limit. It is a mapping of its own
		// from here on, so that no huge page can have both.
		if err := unix.Mlock(a.buf); err != nil {
			return lockError(len(a.buf), err)
		}
		a.taken = len(a.buf)
	}
	return nil
}

// bindTo takes the pages from one NUMA node only.
func (a *Arena) bindTo(node int) error {
	const (
		nodes = 1024
		bind  = 2 // MPOL_BIND
	)
	op := "mbind to node " + strconv.Itoa(node)
	if node < 0 || node >= nodes {
		return &Error{Op: op, Errno: errnoInvalid, Detail: "nodes have numbers from 0 to " + strconv.Itoa(nodes-1)}
	}
	var mask [nodes / 64]uint64
	mask[node/64] = 1 << (node % 64)
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&a.pages[0])), uintptr(len(a.pages)),
		bind, uintptr(unsafe.Pointer(&mask)), nodes+1, 0)
	switch errno {
	case 0:
		return nil
	case unix.EINVAL:
		return withDetail(systemError(op, errno), "this machine has no such node with memory: see /sys/devices/system/node")
	case unix.ENOSYS:
		return withDetail(systemError(op, errno), "this kernel knows no nodes")
	case unix.EPERM:
		return withDetail(systemError(op, errno), "the process may not choose nodes, as in some containers")
	}
	return systemError(op, errno)
}

func lockError(size int, err error) error {
	e := systemError("mlock of "+strconv.Itoa(size)+" bytes", err)
	var limit unix.Rlimit
	if (errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN)) && unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		return withDetail(e, "the process may lock "+strconv.FormatUint(limit.Cur, 10)+" bytes in all: see RLIMIT_MEMLOCK, ulimit -l")
	}
	return e
}

// notHere makes the EINVAL that kernels answer to what they do not know
// ErrNotSupported.
func notHere(err error, detail string) error {
	err = withDetail(err, detail)
	var e *Error
	if errors.As(err, &e) && e.Errno == errnoInvalid {
		e.Errno = Errno(syscall.EOPNOTSUPP)
	}
	return err
}

func withDetail(err error, detail string) error {
	var e *Error
	if errors.As(err, &e) {
		e.Detail = detail
	}
	return err
}
