package fabric

import (
	"slices"
	"sync"
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
		_ = unmap(a.mapped)
		return true
	})
}

// end gives the memory of an arena back.
func (c *closedArenas) end(mapped []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.domains) == 0 {
		return unmap(mapped)
	}
	if err := vacate(mapped); err != nil {
		return err
	}
	a := closedArena{mapped: mapped}
	for d := range c.domains {
		a.domains = append(a.domains, d)
	}
	c.list = append(c.list, a)
	if len(c.list) > mostEnded {
		_ = unmap(c.list[0].mapped)
		c.list = slices.Delete(c.list, 0, 1)
	}
	return nil
}
