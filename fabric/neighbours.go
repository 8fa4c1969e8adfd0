package fabric

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The shm provider, which efa uses within a host, lets endpoints of one process look
// straight into each other's memory, and goes on doing so after the other endpoint is
// closed, if messages of it are still waiting: the process then dies of SIGSEGV. So such
// an endpoint that is closed while another of this process knows it, or may have something
// that it has sent, stays open inside, unused, until that one is closed too, or has removed it,
// by which the program says that all of that has come. Those that have to do with each other
// end together, when none of them can look at another any more (receiveUnread). And one that
// is in a vector stays as long as that is open, for whoever is enabled with it next.
type neighbours struct {
	// ending is for those that look at the same closed queue, and for fi_getinfo, which none of them
	// may be beside. It comes before mu.
	ending sync.Mutex

	mu sync.Mutex
	// all are those that are open inside.
	all map[*Endpoint]struct{}
	// vectors are those that are open and have met somebody.
	vectors map[*AddressVector]struct{}
	// ended are the names of those that were. The provider goes on looking for them
	// where they have been, also for another endpoint of the name.
	ended map[string]struct{}
	// coming are the names of those that are being inserted, and how often.
	coming map[string]int
}

var onThisHost = neighbours{
	all: make(map[*Endpoint]struct{}), vectors: make(map[*AddressVector]struct{}), ended: make(map[string]struct{}),
	coming: make(map[string]int),
}

// neighbour is an endpoint's place among the others. It is the lock of
// neighbours that guards it.
type neighbour struct {
	name    string
	vector  *AddressVector
	retired bool // closed for the program
	stayed  bool // and open inside then
	done    bool // and nothing was on its way to anybody
	named   bool // as one of this process was that is closed
	// pinned is what may still be written to then.
	pinned []runtime.Pinner
	// removals are those that have removed it, and so had all that it had sent them, and to which it
	// has sent nothing since. removed: there are some.
	removals map[string]struct{}
	removed  atomic.Bool
}

// join adds an endpoint that may be looked at.
func (n *neighbours) join(e *Endpoint) {
	name, code := e.raw.Name()
	if code != 0 {
		return
	}
	n.mu.Lock()
	e.neighbour.name = neighbourName(e.provider, name)
	n.all[e] = struct{}{}
	n.mu.Unlock()
	if !looksAtNeighbours(e.provider) {
		e.hold = func() bool {
			n.end(e)
			return false
		}
		return
	}
	e.hold = func() bool {
		e.finishAccesses()
		stays := n.retire(e, !e.hasInFlight())
		if stays {
			e.neighbour.stayed = true
			e.giveUp()
		}
		e.receiveUnread()
		return stays
	}
}

// meet notes that the endpoints of a vector may look at the one with the
// address, and it at them.
func (n *neighbours) meet(v *AddressVector, peer Address, address []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if v.names == nil {
		v.names = make(map[Address]string)
		n.vectors[v] = struct{}{}
	}
	name := neighbourName(v.provider, address)
	v.names[peer] = name
	delete(v.parted, name)
}

// comeBack is meet for a peer that libfabric still has.
func (n *neighbours) comeBack(v *AddressVector, peer Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(v.parted, v.names[peer])
}

// part notes that the program has removed a peer, whether libfabric still has it or not.
func (n *neighbours) part(v *AddressVector, peer Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, met := v.names[peer]
	if !met {
		return
	}
	for e := range n.all {
		if e.neighbour.name != name {
			continue
		}
		if v.parted == nil {
			v.parted = make(map[string]struct{})
		}
		v.parted[name] = struct{}{}
		if e.neighbour.removals == nil {
			e.neighbour.removals = make(map[string]struct{})
		}
		for other := range n.all {
			if other.neighbour.vector == v {
				e.neighbour.removals[other.neighbour.name] = struct{}{}
			}
		}
		e.neighbour.removed.Store(true)
	}
}

// sends notes that an endpoint that somebody has removed sends to a peer.
func (n *neighbours) sends(e *Endpoint, peer Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(e.neighbour.removals, e.neighbour.vector.names[peer])
	if len(e.neighbour.removals) == 0 {
		e.neighbour.removed.Store(false)
	}
}

// forget notes that libfabric does not have a peer any more.
func (n *neighbours) forget(v *AddressVector, peer Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(v.names, peer)
}

// close notes that nobody will be enabled with a vector.
func (n *neighbours) close(v *AddressVector) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.vectors, v)
}

// nameOf is the name of a peer that a vector has met.
func (n *neighbours) nameOf(v *AddressVector, peer Address) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return v.names[peer]
}

// isRetired says whether an endpoint of this process has the name, and is closed for the
// program.
func (n *neighbours) isRetired(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.retired(name)
}

// hasEnded says whether an endpoint of this process had the name, and is closed.
func (n *neighbours) hasEnded(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ended := n.ended[name]
	return ended
}

// anyIsIn says whether a vector has met any endpoint of this process.
func (n *neighbours) anyIsIn(v *AddressVector) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.all {
		if v.hasMet(e.neighbour.name) {
			return true
		}
	}
	return false
}

// isMisnamed says whether an endpoint of a vector has the name of one that is closed, and another of
// this process has the name of the peer.
func (n *neighbours) isMisnamed(v *AddressVector, peer string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	named, local := false, false
	for e := range n.all {
		named = named || e.neighbour.named && e.neighbour.vector == v
		local = local || e.neighbour.name == peer
	}
	return named && local
}

func (n *neighbours) retired(name string) bool {
	for e := range n.all {
		if e.neighbour.retired && e.neighbour.name == name {
			return true
		}
	}
	return false
}

// misledByInfos are the endpoints and the queues of efa that nobody must be in while fi_getinfo
// runs: in libfabric 1.17 what efa knows of shm is gone for a moment when efa has no info to give.
// The queues come last: whoever is in an endpoint may be waiting for one. Endpoints that are
// retired are looked at when their queue is read.
func (n *neighbours) misledByInfos() []*handle {
	n.mu.Lock()
	defer n.mu.Unlock()
	var endpoints, queues []*handle
	for e := range n.all {
		if !e.hasInner() {
			continue
		}
		endpoints = append(endpoints, &e.handle)
		for _, q := range e.queues() {
			if !slices.Contains(queues, &q.handle) {
				queues = append(queues, &q.handle)
			}
		}
	}
	return append(endpoints, queues...)
}

// retire says whether an endpoint that is closed for the program must stay: others
// have to do with it, if only others that stayed.
func (n *neighbours) retire(e *Endpoint, done bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.neighbour.retired, e.neighbour.done = true, done
	if n.heldBack(e, map[*Endpoint]struct{}{e: {}}) {
		return true
	}
	n.leave(e)
	return false
}

// leave is the end of join.
func (n *neighbours) leave(e *Endpoint) {
	delete(n.all, e)
	n.ended[e.neighbour.name] = struct{}{}
	for v := range n.vectors {
		delete(v.parted, e.neighbour.name)
	}
	for other := range n.all {
		delete(other.neighbour.removals, e.neighbour.name)
	}
}

// end is for one at which nobody looks any more once nobody is inserting it.
func (n *neighbours) end(e *Endpoint) {
	for {
		n.mu.Lock()
		busy := n.coming[e.neighbour.name] > 0
		if !busy {
			n.leave(e)
		}
		n.mu.Unlock()
		if !busy {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// approach is for an address that is inserted now, until arrived is called: the provider looks
// for an endpoint of this process that has it, which stays meanwhile. ok is false if the endpoint is
// closed.
func (n *neighbours) approach(provider string, address []byte) (arrived func(), ok bool) {
	if !hasNeighbours(provider) {
		return func() {}, true
	}
	name := neighbourName(provider, address)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ended := n.ended[name]; ended || n.retired(name) {
		return nil, false
	}
	n.coming[name]++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.coming[name]--; n.coming[name] == 0 {
			delete(n.coming, name)
		}
	}, true
}

// looksAt says whether an endpoint looks into the memory of another by itself: libfabric has that in
// its vector.
func looksAt(e, other *Endpoint) bool {
	return e.neighbour.vector.shared || e.neighbour.vector.hasMet(other.neighbour.name)
}

// hasSent says whether an endpoint may have sent something that another has not taken yet, for which
// that looks into its memory.
func hasSent(e, other *Endpoint) bool {
	if e.neighbour.vector.shared {
		return true
	}
	if _, removed := e.neighbour.removals[other.neighbour.name]; removed && e.neighbour.done {
		return false
	}
	_, parted := e.neighbour.vector.parted[other.neighbour.name]
	return parted || e.neighbour.vector.hasMet(other.neighbour.name)
}

// hasMet is asked with the lock of neighbours.
func (v *AddressVector) hasMet(name string) bool {
	for _, met := range v.names {
		if met == name {
			return true
		}
	}
	return false
}

// endAll ends those that stayed and that nobody has to do with any more. own are the
// queues that the caller may look at. Domains of other providers have none, and do not wait
// for those that do.
func (n *neighbours) endAll(d *Domain, own ...*CompletionQueue) error {
	if !looksAtNeighbours(d.provider) {
		return nil
	}
	n.ending.Lock()
	defer n.ending.Unlock()
	n.mu.Lock()
	ended := n.endable(d, own)
	for e := range ended {
		n.leave(e)
	}
	n.mu.Unlock()
	var all error
	// Before the first end, which takes memory away that others would look into. To
	// look at a queue moves what is under way, for which the program need not keep
	// its buffers any more; but where others have the queue, they have looked.
	for e := range ended {
		if q := e.receive; q != nil && q.bound.Load() > 1 {
			e.receiveUnread()
		}
	}
	for e := range ended {
		err := e.release()
		all = errors.Join(all, err)
		if err != nil && e.stayed() {
			n.mu.Lock()
			n.all[e] = struct{}{}
			n.mu.Unlock()
		}
	}
	return all
}

// endable are those that stayed, of the domain and of domains that are closed, and
// have to do with each other alone. The others are for whoever uses their domain,
// which may be one goroutine only; and so for whoever uses their queue.
func (n *neighbours) endable(d *Domain, own []*CompletionQueue) map[*Endpoint]struct{} {
	can := make(map[*Endpoint]struct{})
	for e := range n.all {
		if e.neighbour.retired && (e.domain == d || e.domain.closed()) && !e.othersRead(own) {
			can[e] = struct{}{}
		}
	}
	for fewer := true; fewer; {
		fewer = false
		for e := range can {
			if n.heldBack(e, can) {
				delete(can, e)
				fewer = true
			}
		}
	}
	return can
}

// othersRead says whether somebody may be reading the queue of an endpoint, which has
// to be looked at before the end, and does not own it.
func (e *Endpoint) othersRead(own []*CompletionQueue) bool {
	q := e.receive
	return q != nil && q.bound.Load() > 1 && !q.closed() && !slices.Contains(own, q)
}

// heldBack says whether an endpoint has to do with one that cannot end, or is in a vector, or is
// being inserted.
func (n *neighbours) heldBack(e *Endpoint, can map[*Endpoint]struct{}) bool {
	if n.coming[e.neighbour.name] > 0 {
		return true
	}
	for v := range n.vectors {
		if v.hasMet(e.neighbour.name) {
			return true
		}
	}
	for other := range n.all {
		if _, ends := can[other]; !ends && (looksAt(other, e) || hasSent(e, other)) {
			return true
		}
	}
	return false
}

// looksAtNeighbours says whether endpoints of a process look into each other's memory.
func looksAtNeighbours(provider string) bool {
	return core(provider) == "shm" || core(provider) == "efa" && sharesWithinHost()
}

// hasNeighbours says whether they look for each other when they are inserted: those of efa of
// libfabric 1 have one of shm inside, whatever they use it for.
func hasNeighbours(provider string) bool {
	return looksAtNeighbours(provider) || core(provider) == "efa" && LibraryVersion().Major < 2
}

// sharesWithinHost says whether efa has what stays within a host go by shm, as libfabric understands
// the variable.
func sharesWithinHost() bool {
	return !slices.Contains([]string{"0", "false", "no", "off"}, strings.ToLower(os.Getenv("FI_EFA_ENABLE_SHM_TRANSFER")))
}

// neighbourName is by what endpoints know each other.
func neighbourName(provider string, address []byte) string {
	if core(provider) == "shm" {
		return plainName(address)
	}
	// Efa has a word of its own behind it.
	const length = 24
	return string(address[:min(length, len(address))])
}

// plainName is a name without the scheme, which shm of libfabric 2.x leaves out
// at times, and without the zero byte.
func plainName(address []byte) string {
	name, _, _ := strings.Cut(string(address), "\x00")
	if _, rest, ok := strings.Cut(name, "://"); ok {
		return rest
	}
	return name
}
