package fabric

import (
	"errors"
	"strings"
	"sync"
)

// The shm provider lets endpoints of one process look straight into each
// other's memory, and goes on doing so after the other endpoint is closed, if
// messages of it are still waiting: the process then dies of SIGSEGV. So an
// endpoint on shm that is closed while another of this process knows it, or is
// known by it, stays open inside, unused, until that one is closed too or has
// been removed.
type neighbours struct {
	mu sync.Mutex
	// all are those that are open inside.
	all map[*Endpoint]struct{}
}

var onThisHost = neighbours{all: make(map[*Endpoint]struct{})}

// neighbour is an endpoint's place among the others. It is the lock of
// neighbours that guards it.
type neighbour struct {
	name    string
	vector  *AddressVector
	retired bool // closed for the program
}

// join adds an endpoint that may be looked at.
func (n *neighbours) join(e *Endpoint) {
	name, code := e.raw.Name()
	if code != 0 {
		return
	}
	n.mu.Lock()
	e.neighbour.name = plainName(name)
	n.all[e] = struct{}{}
	n.mu.Unlock()
	e.hold = func() bool {
		if !n.retire(e) {
			return false
		}
		e.giveUp()
		return true
	}
}

// meet notes that the endpoints of a vector may look at the one with the
// address, and it at them.
func (n *neighbours) meet(v *AddressVector, peer Address, address []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if v.names == nil {
		v.names = make(map[Address]string)
	}
	v.names[peer] = plainName(address)
}

// forget notes that they do not any more.
func (n *neighbours) forget(v *AddressVector, peer Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(v.names, peer)
}

// retire says whether an endpoint that is closed for the program must stay.
func (n *neighbours) retire(e *Endpoint) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.neighbour.retired = true
	if n.known(e) {
		return true
	}
	delete(n.all, e)
	return false
}

// known says whether one that the program still uses has to do with e.
func (n *neighbours) known(e *Endpoint) bool {
	for other := range n.all {
		if other != e && !other.neighbour.retired && (knows(other, e) || knows(e, other)) {
			return true
		}
	}
	return false
}

func knows(e, other *Endpoint) bool {
	if e.neighbour.vector.shared {
		return true
	}
	for _, name := range e.neighbour.vector.names {
		if name == other.neighbour.name {
			return true
		}
	}
	return false
}

// endAll ends those that stayed and that nobody knows any more: those of the
// domain, and of domains that are closed. The others are for whoever uses their
// domain, which may be one goroutine only.
func (n *neighbours) endAll(d *Domain) error {
	var ended []*Endpoint
	n.mu.Lock()
	for e := range n.all {
		if e.neighbour.retired && (e.domain == d || e.domain.closed()) && !n.known(e) {
			delete(n.all, e)
			ended = append(ended, e)
		}
	}
	n.mu.Unlock()
	var all error
	for _, e := range ended {
		all = errors.Join(all, e.release())
	}
	return all
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
