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
}

func (r *Reactor) insert(address []byte) (*peer, error) {
	return r.insertInto(r.device, r.peers, address)
}

func (r *Reactor) insertInto(device fabric.Device, peers map[string]*peer, address []byte) (*peer, error) {
	if p := peers[string(address)]; p != nil {
		p.refs++
		return p, nil
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
	if p.lost && r.attributes.KeepLostPeers {
		// What it had sent is taken in first, for which every shared receive
		// must be there.
		p.refs++
		time.AfterFunc(letGo, func() {
			r.submit(func() {
				p.lost = !r.shared.empty()
				r.remove(p)
			})
		})
		return
	}
	delete(r.peers, p.name)
	r.removeFrom(r.device, p)
}

func (r *Reactor) removeFrom(device fabric.Device, p *peer) {
	r.stats.Crossings++
	if err := device.Remove(p.address); err != nil && !fabric.IsClosed(err) {
		r.log.Warn("weft: removing a peer", "error", err)
	}
}
