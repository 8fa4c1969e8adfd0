package fabric

import (
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An operation in flight may still use the memory of an arena that is closed:
// sockets copies on a thread of its own, and dies of SIGSEGV where nothing is
// mapped. So the memory of a closed arena goes at once, but its addresses stay
// mapped, to memory that nobody has, until the domains are closed that were open
// at the time.
type closedArenas struct {
	mu      sync.Mutex
	domains map[*Domain]struct{}
	list    []closedArena
}

type closedArena struct {
	mapped  []byte
	domains []*Domain // that may use it, of those that are open
}

var endedArenas = closedArenas{domains: make(map[*Domain]struct{})}

// mostEnded bounds what stays mapped. What was closed so many arenas ago is no
// longer used.
const mostEnded = 4096

// opened adds a domain.
func (c *closedArenas) opened(d *Domain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.domains[d] = struct{}{}
}

// closed takes a domain out, and unmaps what stayed for it.
func (c *closedArenas) closed(d *Domain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.domains, d)
	c.list = slices.DeleteFunc(c.list, func(a closedArena) bool {
		if i := slices.Index(a.domains, d); i >= 0 {
			a.domains[i] = nil
		}
		for _, other := range a.domains {
			if other != nil {
				return false
			}
		}
		_ = unix.Munmap(a.mapped)
		return true
	})
}

// end gives the memory of an arena back.
func (c *closedArenas) end(mapped []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.domains) == 0 {
		return unix.Munmap(mapped)
	}
	// In one step, so that nothing else can come in between.
	const flags = unix.MAP_ANON | unix.MAP_PRIVATE | unix.MAP_FIXED | unix.MAP_NORESERVE
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&mapped[0]), uintptr(len(mapped)), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return err
	}
	a := closedArena{mapped: mapped}
	for d := range c.domains {
		a.domains = append(a.domains, d)
	}
	c.list = append(c.list, a)
	if len(c.list) > mostEnded {
		_ = unix.Munmap(c.list[0].mapped)
		c.list = slices.Delete(c.list, 0, 1)
	}
	return nil
}
