package fabric

import (
	"math"
	"strconv"
	"sync"
	"sync/atomic"
)

// Arena is memory outside the Go heap, in whole pages, that stays where it is:
// for buffers that operations use without copying or pinning (Op.Fixed). Any
// goroutine may call its methods, and use parts of the memory that others do not;
// Close must come when nobody does any more.
type Arena struct {
	handle
	buf    []byte
	pages  []byte // buf, and what its last page has beyond it, if that is a huge one unasked
	mapped []byte // pages, and what alignment cost
	taken  int    // bytes of memory, once all of buf has been touched
	pooled atomic.Bool

	holding sync.Mutex // guards holders
	holders []*holder
}

// Pages is the kind of pages that an arena is made of.
type Pages int

// The kinds of pages.
const (
	// SuitablePages are huge ones in an arena of 2 MiB or more, if the kernel has some, and
	// ordinary ones otherwise; the arena is as long with either, but one that is not locked
	// takes the whole of its last huge page from the system. What a process writes to the
	// memory of another on the same host, as with shm, takes about a third of the time in
	// huge ones: the kernel looks at each page.
	SuitablePages Pages = iota
	// OrdinaryPages are the system's: of a large arena that is used here and there, only what
	// is used takes memory.
	OrdinaryPages
	// TransparentHugePages asks the kernel to use huge pages where it has them,
	// and lets it do without. A kernel that knows no such pages is an error.
	TransparentHugePages
	// HugePages2M and HugePages1G are pages that the administrator has set
	// aside; if there are too few, the arena is refused.
	HugePages2M
	HugePages1G
)

// String says which pages they are.
func (p Pages) String() string {
	return names[Pages]{
		SuitablePages: "suitable pages", OrdinaryPages: "ordinary pages", TransparentHugePages: "transparent huge pages",
		HugePages2M: "huge pages of 2 MiB", HugePages1G: "huge pages of 1 GiB",
	}.of(p)
}

// ArenaConfig adjusts an arena. The zero value means suitable pages, anywhere,
// that the kernel provides when they are first touched.
type ArenaConfig struct {
	// Pages is the kind of pages; zero means SuitablePages.
	Pages Pages
	// Node is the NUMA node to take the memory from; nil leaves it to the
	// kernel.
	Node *int
	// Locked provides all pages at once and keeps them in memory (mlock).
	Locked bool
}

// What the arenas of the process take.
var arenaBytes atomic.Int64

// NewArena maps size bytes, rounded up to whole pages of the system's size, zeroed, in
// [SuitablePages]. Errors are those of NewArenaWith. Any goroutine may call it.
func NewArena(size int) (*Arena, error) { return NewArenaWith(size, ArenaConfig{}) }

// NewArenaWith maps size bytes, zeroed, as c has it: rounded up to whole pages, huge ones
// only where c.Pages names them. A size below 1 or above 2^40 is ErrInvalid. What the kernel
// refuses is an *Error that says why: ErrInvalid for a node that is not there,
// ErrNotSupported for what this kernel does not have, and the kernel's ENOMEM or
// EPERM, with what to do about it, where a limit is reached. Any goroutine may call it.
func NewArenaWith(size int, c ArenaConfig) (*Arena, error) {
	const most = min(1<<40, math.MaxInt)
	if size < 1 || size > most {
		return nil, &Error{Op: "arena", Errno: errnoInvalid, Detail: "an arena cannot have " + strconv.Itoa(size) + " bytes"}
	}
	if c.Pages < SuitablePages || c.Pages > HugePages1G {
		return nil, &Error{Op: "arena", Errno: errnoInvalid, Detail: "there is no such kind of pages: " + strconv.Itoa(int(c.Pages))}
	}
	a, err := mapArena(size, c.Pages)
	if err != nil {
		return nil, err
	}
	if err := a.settle(c); err != nil {
		_ = unmap(a.mapped)
		return nil, err
	}
	arenaBytes.Add(int64(a.taken))
	a.open("arena", "")
	a.list()
	return a, nil
}

// Bytes is all of the arena's memory. It must not be used after Close.
func (a *Arena) Bytes() []byte { return a.buf }

// Register makes all of the arena known to a domain, so that every buffer in it
// has a descriptor (Region.Descriptor) and an address for peers
// (Region.RemoteOf). The arena cannot be closed before the region. Errors are those
// of [Domain.RegisterMemory].
func (a *Arena) Register(d *Domain, c RegionConfig) (*Region, error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	defer a.leave()
	if d == nil {
		return nil, a.invalid("fi_mr_reg", "there is no domain to register with")
	}
	r, err := d.RegisterMemory(c, a.buf)
	if err != nil {
		return nil, err
	}
	r.adopt(&a.handle)
	return r, nil
}

// Close gives the memory back, and has those release it who keep it registered for
// further use (BeforeClose). ErrBusy says what still uses it. An operation in flight that
// does all the same gets or leaves nothing sensible.
func (a *Arena) Close() error {
	if err := a.releaseHolders(); err != nil {
		return err
	}
	return a.close(func() error {
		if err := a.held(); err != nil {
			return err
		}
		a.unlist()
		if err := endedArenas.end(a.mapped); err != nil {
			a.list()
			return systemError("munmap", err)
		}
		arenaBytes.Add(-int64(a.taken))
		a.buf, a.pages, a.mapped = nil, nil, nil
		return nil
	})
}
