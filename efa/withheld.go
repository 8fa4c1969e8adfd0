package efa

import (
	"errors"
	"time"
)

// Receives of payloads have a part of the device's room. Peers that announce payloads
// and do not send them could take all of it, each a little: those of others would wait
// for ever. So when some have waited for Config.PeerTimeout, the connections of which
// no payload has come in that time end, but only then: a peer that is stopped for a
// while harms nobody as long as there is room.

var errWithheld = errors.New("it announced payloads and did not send them, while others had no room")

// noteStarved begins to look for those who withhold payloads, if others wait for room.
func (r *Reactor) noteStarved() {
	if r.starving || !r.starves() {
		return
	}
	r.starving = true
	for c := range r.connections() {
		c.payloadsBefore = c.payloadsCome
	}
	time.AfterFunc(r.config.patience, func() {
		r.submit(r.endWithheld)
	})
}

// endWithheld ends the connections that are in the way.
func (r *Reactor) endWithheld() {
	r.starving = false
	if r.broken != nil || !r.starves() {
		return
	}
	var silent []*Conn
	for c := range r.connections() {
		if c.receiving > 0 && c.payloadsCome == c.payloadsBefore && c.failure == nil && r.holdsRoom(c) {
			silent = append(silent, c)
		}
	}
	for _, c := range silent {
		r.fail(c, ErrPeerLost, errWithheld)
	}
}

// starves says whether receives of payloads wait for room on any device, and full
// whether they do on one, of which l is the rail, or nil for the first.
func (r *Reactor) starves() bool {
	if r.full(nil) {
		return true
	}
	for _, l := range r.rails {
		if r.full(l) {
			return true
		}
	}
	return false
}

func (r *Reactor) full(l *rail) bool {
	if l == nil {
		return r.payloadRoom <= 0 && !r.payloads.empty()
	}
	return l.broken == nil && l.receiveRoom <= 0 && !l.receives.empty()
}

// holdsRoom says whether a device that is full has a receive for a payload of the
// connection: one that waits for room itself has nothing to answer for.
func (r *Reactor) holdsRoom(c *Conn) bool {
	for op := c.operations; op != nil; op = op.next {
		if op.purpose != payloadReceive || !op.posted {
			continue
		}
		var l *rail
		if on := op.rail(); on != nil {
			l = on.rail
		}
		if r.full(l) {
			return true
		}
	}
	return false
}
