package fabric

import (
	"errors"
	"sync"
)

// The shm provider lets endpoints of one process look straight into each
// other's memory, and goes on doing so after the other endpoint is closed, if
// messages of it are still waiting: the process then dies of SIGSEGV. So a port
// on shm that is closed while another of this process knows it stays open
// inside, unused, until that one is closed or has removed it.
type neighbours struct {
	mu    sync.Mutex
	ports map[string]*Port // by address
}

var shmPorts = neighbours{ports: make(map[string]*Port)}

// neighbour is a port's place among the others. It is the lock of neighbours
// that guards it.
type neighbour struct {
	knows   map[Address]*Port // whom it may look at
	known   int               // how many may look at it
	retired bool              // closed for its owner
}

// join adds a port that may be looked at.
func (n *neighbours) join(p *Port) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.neighbour.knows = make(map[Address]*Port)
	n.ports[string(p.address)] = p
}

// meet notes that p may look at the port with this address from now on.
func (n *neighbours) meet(p *Port, address []byte, as Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if other := n.ports[string(address)]; other != nil && other != p && p.neighbour.knows[as] == nil {
		p.neighbour.knows[as] = other
		other.neighbour.known++
	}
}

// forget notes that p does not look at a peer any more.
func (n *neighbours) forget(p *Port, peer Address) error {
	n.mu.Lock()
	free := n.part(p, peer)
	n.mu.Unlock()
	return closeAll(free)
}

// part ends one acquaintance, and returns the port that can be closed for it.
func (n *neighbours) part(p *Port, peer Address) []*Port {
	other := p.neighbour.knows[peer]
	if other == nil {
		return nil
	}
	delete(p.neighbour.knows, peer)
	if other.neighbour.known--; other.neighbour.known == 0 && other.neighbour.retired {
		return []*Port{other}
	}
	return nil
}

// retire closes a port that nobody looks at, and keeps one that somebody does
// for later. Either way it does not look at others any more.
func (n *neighbours) retire(p *Port) error {
	n.mu.Lock()
	if p.neighbour.retired {
		n.mu.Unlock()
		return nil
	}
	p.neighbour.retired = true
	delete(n.ports, string(p.address))
	var free []*Port
	if p.neighbour.known == 0 {
		free = append(free, p)
	}
	for peer := range p.neighbour.knows {
		free = append(free, n.part(p, peer)...)
	}
	n.mu.Unlock()
	return closeAll(free)
}

func closeAll(ports []*Port) error {
	var all error
	for _, p := range ports {
		all = errors.Join(all, p.closeParts())
	}
	return all
}
