package fabric

import (
	"math"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/weft-go/weft/cgo"
)

// Where the device does not do it, the efa provider has the peer's write, read or do atomic
// operations. The peer's looks for the memory, and if there is none, or not with these rights,
// looks into what it has not found, which ends the process: a wrong key is enough, and so is an
// access that was on its way when its region was closed. So weft knows what peers may reach, and
// has what they may not fail before libfabric sees it. A write, or a read, is not answered then;
// an atomic operation is answered as one of no elements, since those are in order with messages.

// A request that was refused is one of a kind that is retired, for libfabric.
const retiredRequest = 4097 // FI_EFA_ERR_DEPRECATED_PKT_TYPE

const forbidden = "a peer asked for memory that it may not have: the key is wrong or that of a closed region, or the region ends before, or has no such rights"

// saysForbidden says of an error of an event queue that it is about such a request.
func saysForbidden(e *Error, providerErrno int32) bool {
	return core(e.Provider) == "efa" && e.Errno == Errno(syscall.EIO) && providerErrno == retiredRequest
}

// openReach is for a domain that was just opened.
func openReach(i *Info) (r cgo.Reach, ok bool) {
	// The fabric efa-direct has what the device does, and nothing else.
	if core(i.Provider()) != "efa" || i.Fabric() == "efa-direct" {
		return r, true
	}
	return cgo.NewReach()
}

// guardReach is for an endpoint that is about to be enabled.
func guardReach(e *Endpoint, queues ...*CompletionQueue) {
	if goesOnInPieces(e.provider) {
		e.domain.lingering.watch(e)
	}
	r := e.domain.reach
	if r == (cgo.Reach{}) || e.Info().Endpoint() != ReliableDatagram {
		return
	}
	e.domain.lingering.watch(e)
	// Who has the device's queue differs between versions of libfabric.
	for _, q := range queues {
		if q != nil {
			r.GuardQueue(q.raw)
		}
	}
	e.sendsLongWrites = r.Guard(e.raw) == cgo.DeviceReadsNot && LibraryVersion().Major < 2
}

// reached is what of a region peers may reach, and their rights.
func (r *Region) reached() (base uintptr, length, rights uint64) {
	rights = uint64(r.access & (AccessRemoteRead | AccessRemoteWrite))
	if r.ofDevice {
		// Where in memory of a device peers may go is for libfabric to say.
		return 0, math.MaxUint64, rights
	}
	// There is one buffer (mr_iov_limit).
	return r.segments[0].base, r.length, rights
}

// expose has peers reach a region that was just registered, as far as it says. If there is no
// memory to note it, they do not.
func (r *Region) expose() bool {
	base, length, rights := r.reached()
	if r.domain.reach == (cgo.Reach{}) || rights == 0 {
		return true
	}
	r.exposed = r.domain.reach.Add(r.raw.Key(), base, length, rights) == 0
	return r.exposed
}

// goesOnInPieces says of a provider that the target looks at a region for each piece of an access, also
// when it is closed: shm of 2.x, which goes in pieces within a process, and where it may not look into
// the peer's memory, and efa, which has it inside for within the host.
func goesOnInPieces(provider string) bool {
	return looksAtNeighbours(provider) && !olderThanTwo
}

// closeExposed is fi_close of a region. No access of a peer begins behind it on efa. Where one may go
// on, libfabric has the region until its domain is closed, and its memory stays pinned; where it is seen
// that one does, until another region of the domain is closed when none does any more.
func (r *Region) closeExposed() (code cgo.Code, lingers bool) {
	if goesOnInPieces(r.provider) && r.access&(AccessRemoteRead|AccessRemoteWrite) != 0 {
		r.innerDescriptor = r.raw.InnerDescriptor()
		r.inPieces = core(r.provider) == "shm" || r.innerDescriptor != 0
	}
	if r.inPieces {
		// An access that has just found the region is in no endpoint yet.
		defer r.domain.excludeTurns()()
	}
	if !r.exposed {
		if r.inPieces && r.domain.lingering.keepUsed(r) {
			return 0, true
		}
		return r.raw.Close(), false
	}
	base, length, rights := r.reached()
	if begun := r.domain.reach.Remove(r.raw.Key(), base, length, rights); begun != 0 {
		if begun&cgo.BegunAtomic != 0 {
			r.mayBeAwaited = time.Now().Add(longestLate)
		}
		r.domain.lingering.add(r)
		return 0, true
	}
	if r.inPieces && r.domain.lingering.keepUsed(r) {
		return 0, true
	}
	if code = r.raw.Close(); code != 0 {
		r.expose()
	}
	return code, false
}

// lingering are regions that are closed, and that libfabric has all the same.
type lingering struct {
	mu        sync.Mutex
	list      []*Region // the oldest first
	bytes     uint64
	endpoints map[*Endpoint]*cgo.UnderWay // nil of one that is being closed
	// enough and enoughBytes are how many there are before it is looked which are in use.
	enough      int
	enoughBytes uint64
	// again, if not zero, is when some may go that atomic operations may have waited in before.
	again time.Time
}

// mostLingering and mostLingeringBytes bound those that no access goes on in, as far as that was
// looked at, but for the last. There are sixteen times as many where atomic operations may wait for
// messages that are late, which nobody sees: as late as longestLate, which is far beyond what the
// device takes, and the pause of a sender whose receiver was not ready, which is a second.
const (
	mostLingering      = 1024
	mostLingeringBytes = 256 << 20
	timesAwaited       = 16
	longestLate        = 10 * time.Second
)

// watch is for an endpoint that is about to be enabled. Of one that is made in another way than those
// of the versions that are known, nothing can be seen.
func (l *lingering) watch(e *Endpoint) {
	u, known := cgo.UnderWayOf(e.raw)
	if !known {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endpoints == nil {
		l.endpoints = make(map[*Endpoint]*cgo.UnderWay)
	}
	l.endpoints[e] = u
}

// ends is for an endpoint that libfabric is to close, where accesses may go on meanwhile, and nobody
// may look at it. Afterwards closed says whether it is.
func (l *lingering) ends(e *Endpoint) (closed func(bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u, watched := l.endpoints[e]
	if !watched {
		return func(bool) {}
	}
	l.endpoints[e] = nil
	return func(is bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if is {
			delete(l.endpoints, e)
		} else {
			l.endpoints[e] = u
		}
	}
}

func (l *lingering) add(r *Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r)
	l.bytes += r.length
	passed := !l.again.IsZero() && time.Now().After(l.again)
	if passed || len(l.list) > max(l.enough, mostLingering) || l.bytes > max(l.enoughBytes, mostLingeringBytes) {
		l.thin()
		// As many again may come before the next look.
		l.enough, l.enoughBytes = len(l.list)+max(len(l.list), mostLingering)/4, l.bytes+mostLingeringBytes/4
	}
}

// keepUsed adds a region if an access in pieces goes on in it, which it says, and ends those of which that
// was said, and in which none does.
func (l *lingering) keepUsed(r *Region) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r)
	l.bytes += r.length
	used := l.inUse()
	l.list = slices.DeleteFunc(l.list, func(other *Region) bool {
		if used(other) || other != r && !other.keptUsed {
			return false
		}
		l.bytes -= other.length
		if other != r {
			other.endLingering()
		}
		return true
	})
	r.keptUsed = used(r)
	return r.keptUsed
}

// thin ends the oldest that no access of a peer goes on in, until three quarters are left of what
// may be.
func (l *lingering) thin() {
	used, now := l.inUse(), time.Now()
	l.again = time.Time{}
	var kept []*Region
	for i, r := range l.list {
		left := len(kept) + len(l.list) - i
		over := left > mostLingering*3/4 || l.bytes > mostLingeringBytes*3/4
		many := left > mostLingering*timesAwaited || l.bytes > mostLingeringBytes*timesAwaited
		awaited := !many && now.Before(r.mayBeAwaited)
		if i == len(l.list)-1 || !over || used(r) || awaited {
			if over && awaited && l.again.IsZero() {
				l.again = r.mayBeAwaited
			}
			kept = append(kept, r)
			continue
		}
		l.bytes -= r.length
		r.endLingering()
	}
	l.list = kept
}

// inUse looks at all endpoints, and returns whether an access goes on in a region.
func (l *lingering) inUse() func(*Region) bool {
	descriptors := make([]uintptr, 0, len(l.list))
	for _, r := range l.list {
		descriptors = append(descriptors, r.raw.Descriptor())
		if r.innerDescriptor != 0 {
			descriptors = append(descriptors, r.innerDescriptor)
		}
	}
	slices.Sort(descriptors)
	found := make([]uint8, len(descriptors))
	for _, u := range l.endpoints {
		if u == nil || !u.Refers(descriptors, found) {
			return func(*Region) bool { return true }
		}
	}
	is := func(descriptor uintptr) bool {
		i, there := slices.BinarySearch(descriptors, descriptor)
		return there && found[i] != 0
	}
	return func(r *Region) bool { return is(r.raw.Descriptor()) || is(r.innerDescriptor) }
}

// end is for when nothing of the domain is open but the domain.
func (l *lingering) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.list {
		r.endLingering()
	}
	l.list, l.bytes = nil, 0
}

func (r *Region) endLingering() {
	r.raw.Close()
	r.pinner.Unpin()
}
