package efa

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/hostmemory"
	"github.com/weft-go/weft/tagged"
)

// Beside the device: where all peers are processes of this host (Reactor.SameHost), short messages
// go through memory that both sides have mapped, which takes a third of what the device takes. Who
// has got some messages of a peer makes a ring for it, and invites it on each connection of theirs;
// from then on the peer puts the connection's length messages with their payload there, and its
// control messages, as far as there is room. What has none goes by the device. Which way a message
// has come does not matter: they have numbers.
//
// A ring is the memory of who reads it. It stays for as long as a connection is there that was
// invited to it, so that a peer that knows of a ring that is gone can only write what nobody waits
// for any more.

const (
	// invitedAfter is how many messages of a connection show that it is worth it.
	invitedAfter = 16
	// mostRings is how many rings a process has, its own and those of peers: each takes memory, and
	// its own a descriptor and time to look at them.
	mostRings = 256
	// looksPerRing is how much is taken from a ring before others have their turn.
	looksPerRing = 32
	ringName     = "weft-ring"
)

// beside is what a reactor has beside its device. It belongs to the role.
type beside struct {
	inboxes []*inbox
	// put are operations of which the message is in a ring: they are over once nobody is working on
	// the lists of their connections.
	put, spare []*operation
	// into is where a message is copied to; reading: it is being taken in.
	into    []byte
	reading bool
}

// inbox is a ring for a peer to write to.
type inbox struct {
	ringReader
	memory *hostmemory.Memory
	peer   *peer
	users  int // connections that were invited
}

// outbox is a ring of a peer's.
type outbox struct {
	ringWriter
	users int // connections that go there
}

// besides is what a connection has of these. Most have none.
type besides struct {
	inbox  *inbox
	outbox *outbox
}

// rings is how many the process has.
var rings atomic.Int64

// goesBeside says whether the reactor's messages may go beside its device.
func (r *Reactor) goesBeside() bool {
	return r.SameHost() && len(r.rails) == 0 && !r.config.DeviceOnly
}

// invite offers a ring to the peer of a connection, if there can be one.
func (r *Reactor) invite(c *Conn) {
	if c.peer.shunned {
		return
	}
	in := c.peer.inbox
	if in == nil {
		var err error
		if in, err = r.newInbox(c.peer); err != nil {
			// The system has none, or does not want it to be shared.
			r.log.Debug("weft: no memory beside the device", "peer", c.RemoteAddr(), "error", err)
			return
		}
	}
	c.with().inbox = in
	in.users++
	process, descriptor := in.memory.Name()
	r.sendControl(c, tagged.Control{Type: tagged.ControlInvite, Messages: process<<32 | descriptor, Bytes: cookieOf(in.ring)})
}

func (c *Conn) with() *besides {
	if c.beside == nil {
		c.beside = &besides{}
	}
	return c.beside
}

var errTooManyRings = fmt.Errorf("efa: the process has %d rings", mostRings)

// counted counts the ring that f makes or maps, if there may be another one.
func counted(f func() error) (err error) {
	if rings.Add(1) > mostRings {
		err = errTooManyRings
	} else {
		err = f()
	}
	if err != nil {
		rings.Add(-1)
	}
	return err
}

func (r *Reactor) newInbox(p *peer) (*inbox, error) {
	var memory *hostmemory.Memory
	err := counted(func() (err error) {
		memory, err = hostmemory.New(ringName, ringSize)
		return err
	})
	if err != nil {
		return nil, err
	}
	_, _ = rand.Read(memory.Bytes[:8]) // never fails
	in := &inbox{ringReader: ringReader{ring: memory.Bytes}, memory: memory, peer: p}
	p.inbox = in
	b := &r.beside
	if b.into == nil {
		b.into = make([]byte, mostInRing)
	}
	b.inboxes = append(b.inboxes, in)
	Progress{r}.LookOut(b, len(b.inboxes))
	return in, nil
}

// invitedTo takes in that the peer has a ring for this side.
func (r *Reactor) invitedTo(c *Conn, m tagged.Control) error {
	if c.features&featureBeside == 0 {
		return &tagged.ControlError{Problem: tagged.ControlUnknownType, Type: m.Type, Got: tagged.ControlSize}
	}
	p := c.peer
	if c.beside != nil && c.beside.outbox != nil || c.failure != nil || !r.goesBeside() {
		return nil
	}
	if p.outbox == nil || cookieOf(p.outbox.ring) != m.Bytes {
		var ring []byte
		err := counted(func() (err error) {
			ring, err = hostmemory.Map(ringName, m.Messages>>32, m.Messages&(1<<32-1), ringSize)
			if err == nil && cookieOf(ring) != m.Bytes {
				err = errors.Join(errors.New("it is another ring"), hostmemory.Unmap(ring))
			}
			return err
		})
		if err != nil {
			r.log.Debug("weft: the peer's memory beside the device cannot be mapped", "peer", c.RemoteAddr(), "error", err)
			return nil
		}
		// What others know of the last one they go on with.
		p.outbox = &outbox{ringWriter: resume(ring)}
	}
	c.with().outbox = p.outbox
	p.outbox.users++
	return nil
}

// putBeside puts a message of a connection, in three parts, into the peer's ring, if there is one with
// room.
func (c *Conn) putBeside(tag uint64, first, second, third []byte) bool {
	if c.beside == nil || c.beside.outbox == nil || c.failure != nil || c.over || !c.beside.outbox.put(tag, first, second, third) {
		return false
	}
	c.stats.Beside++
	return true
}

// sendBeside puts the length message of a message of n bytes into the peer's ring, with what rides in
// it, which is all or nothing, and says whether it could.
func (r *Reactor) sendBeside(c *Conn, id uint32, ticket tagged.Ticket, n int, head, payload []byte) bool {
	var length [tagged.LengthSize]byte
	tagged.PutLength(length[:], int64(n))
	if !c.putBeside(tagged.LengthTag(c.remoteID, id), length[:], head, payload) {
		return false
	}
	c.gathering = nil
	op := r.newOperation(c, messageSend)
	op.ticket = ticket
	r.beside.put = append(r.beside.put, op)
	return true
}

// endBeside ends the operations of which the messages have gone beside the device.
func (r *Reactor) endBeside() {
	b := &r.beside
	// One may bring others about.
	for len(b.put) > 0 {
		over := b.put
		b.put, b.spare = b.spare[:0], nil
		for _, op := range over {
			r.ended(op, nil)
		}
		b.spare = over
	}
}

// Look implements Lookout.
func (b *beside) Look(p Progress) (found bool) {
	for i := 0; i < len(b.inboxes); i++ {
		in := b.inboxes[i]
		for n := 0; n < looksPerRing && in.isThere() && p.reactor.takeBeside(in); n++ {
			found = true
		}
	}
	if found {
		p.reactor.endBeside()
	}
	return found
}

// takeBeside takes in the next message of a ring, which is there. It says whether it was one, and
// could be taken.
func (r *Reactor) takeBeside(in *inbox) bool {
	b := &r.beside
	if b.reading {
		return false
	}
	tag, message, ok := in.next(b.into)
	if !ok {
		r.wrongBeside(in)
		return false
	}
	b.reading = true
	done := fabric.Completion{Tag: tag, Len: len(message), Source: in.peer.address}
	switch kind, _, _ := tagged.ParseTag(tag); kind {
	case tagged.KindLength:
		r.lengthArrived(message, &done)
	case tagged.KindControl:
		r.controlArrived(message, &done)
	default:
		r.stats.Dropped++
		r.logDropped(&done)
	}
	b.reading = false
	return true
}

// takeAllBeside takes in what the peer of a connection that is about to end has put there.
func (r *Reactor) takeAllBeside(c *Conn) {
	if c.beside == nil || c.beside.inbox == nil {
		return
	}
	in := c.beside.inbox
	// A peer that goes on has to be content with what the ring holds.
	for n := 0; n < ringEntries && in.isThere() && r.takeBeside(in); n++ {
		continue
	}
}

// mostSkipped is how many calls may be served without a turn in between.
func (r *Reactor) mostSkipped() int {
	if r.lookouts.last && r.lookouts.device == 0 && len(r.beside.inboxes) > 0 {
		return mostSkippedBeside
	}
	return mostSkipped
}

// wrongBeside ends the connections of a peer that has written nonsense to its ring.
func (r *Reactor) wrongBeside(in *inbox) {
	in.peer.inbox, in.peer.shunned = nil, true
	for _, c := range slices.Collect(r.connections()) {
		if c.beside != nil && c.beside.inbox == in {
			r.fail(c, ErrProtocol, errors.New("what it has written beside the device is no message"))
		}
	}
}

// leaveBeside ends what a connection has beside the device.
func (r *Reactor) leaveBeside(c *Conn) {
	if c.beside == nil {
		return
	}
	in, out := c.beside.inbox, c.beside.outbox
	c.beside = nil
	if in != nil {
		if in.users--; in.users == 0 {
			r.closeInbox(in)
		}
	}
	if out != nil {
		if out.users--; out.users == 0 {
			if c.peer.outbox == out {
				c.peer.outbox = nil
			}
			rings.Add(-1)
			r.unmapped(hostmemory.Unmap(out.ring))
		}
	}
}

func (r *Reactor) closeInbox(in *inbox) {
	b := &r.beside
	if in.ring = nil; in.peer.inbox == in {
		in.peer.inbox = nil
	}
	b.inboxes = slices.DeleteFunc(b.inboxes, func(other *inbox) bool { return other == in })
	if len(b.inboxes) == 0 {
		Progress{r}.Rest(b)
	} else {
		Progress{r}.LookOut(b, len(b.inboxes))
	}
	rings.Add(-1)
	r.unmapped(in.memory.Close())
}

func (r *Reactor) unmapped(err error) {
	if err != nil {
		r.log.Warn("weft: memory beside the device", "error", err)
	}
}
