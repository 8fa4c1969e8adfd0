package efa

import (
	"time"

	"github.com/weft-go/weft/fabric"
)

// peer is an address that connections share: not every provider knows an
// address again that is inserted a second time.
type peer struct {
	address fabric.Address
	rail    *rail // that it is a peer of, nil for the first device
	name    string
	refs    int
	// lost: a connection to it ended with messages on their way.
	lost bool
	// Beside the device: what this side reads, and what it writes to. shunned: what the peer wrote was
	// no message.
	inbox   *inbox
	outbox  *outbox
	shunned bool
}

func (r *Reactor) insert(address []byte) (*peer, error) {
	return r.insertInto(r.device, r.peers, address)
}

func (r *Reactor) insertInto(device fabric.Device, peers map[string]*peer, address []byte) (*peer, error) {
	if p := peers[string(address)]; p != nil {
		p.refs++
		return p, nil
	}
	if r.attributes.KeepLostPeers && r.broken == nil {
		// Some that were removed may be gone by now, and leave the provider.
		r.leavesSome()
	}
	r.stats.Crossings++
	a, err := device.Insert(address)
	if err != nil {
		return nil, err
	}
	p := &peer{address: a, name: string(address), refs: 1}
	peers[p.name] = p
	return p, nil
}

func (r *Reactor) remove(p *peer) {
	if p.refs--; p.refs > 0 || r.broken != nil {
		return
	}
	if p.rail != nil {
		if p.rail.broken == nil {
			r.removeFromRail(p)
		}
		return
	}
	if r.attributes.KeepLostPeers {
		r.removeLater(p)
		return
	}
	r.forget(p)
}

func (r *Reactor) forget(p *peer) {
	delete(r.peers, p.name)
	r.removeFrom(r.device, p)
}

// removeLater removes a peer once what it had sent has been taken in, and what it had
// begun to write: one that has closed in order may have given that up.
func (r *Reactor) removeLater(p *peer) {
	p.refs++
	f := func() {
		// Every shared receive must be there for what a lost one had sent.
		p.lost = r.leavesSome() || p.lost && !r.shared.empty()
		if p.refs--; p.refs > 0 || r.broken != nil {
			return
		}
		if p.lost {
			r.removeLater(p)
			return
		}
		r.forget(p)
	}
	if p.lost {
		time.AfterFunc(letGo, func() { r.submit(f) })
	} else {
		r.later(f)
	}
}

// leavesSome reads the queue until nothing is there, and says whether there may still be
// something.
func (r *Reactor) leavesSome() bool {
	for range 64 {
		if r.closed.Load() || r.broken != nil {
			return false
		}
		_, reaped, err := r.turn(r.device, 0, r.completions, 0)
		if err != nil {
			r.breakDown(err)
		}
		if reaped == 0 {
			return false
		}
	}
	return true
}

func (r *Reactor) removeFrom(device fabric.Device, p *peer) {
	r.stats.Crossings++
	if err := device.Remove(p.address); err != nil && !fabric.IsClosed(err) {
		r.log.Warn("weft: removing a peer", "error", err)
	}
}
