package fabric

import (
	"math"
	"slices"
	"sync"
	"syscall"

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
	r := e.domain.reach
	if r == (cgo.Reach{}) || e.Info().Endpoint() != ReliableDatagram {
		return
	}
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

// closeExposed is fi_close of a region. No access of a peer begins behind it. Where one may go
// on, libfabric has the region until its domain is closed, and its memory stays pinned.
func (r *Region) closeExposed() (code cgo.Code, lingers bool) {
	if !r.exposed {
		return r.raw.Close(), false
	}
	base, length, rights := r.reached()
	if r.domain.reach.Remove(r.raw.Key(), base, length, rights) {
		r.domain.lingering.add(r)
		return 0, true
	}
	if code = r.raw.Close(); code != 0 {
		r.expose()
	}
	return code, false
}

// lingering are regions that are closed, and that libfabric has all the same.
type lingering struct {
	mu    sync.Mutex
	list  []*Region
	bytes uint64
}

// mostLingering and mostLingeringBytes bound them, but for the last. A peer that takes longer for
// an access than so many others take that come after it can still end the process.
const (
	mostLingering      = 1024
	mostLingeringBytes = 256 << 20
)

func (l *lingering) add(r *Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r)
	l.bytes += r.length
	for len(l.list) > 1 && (len(l.list) > mostLingering || l.bytes > mostLingeringBytes) {
		l.bytes -= l.list[0].length
		l.list[0].endLingering()
		l.list = slices.Delete(l.list, 0, 1)
	}
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
