package efa

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// The plain form has no credits, so what arrives is bounded here: the lengths of
// attached connections are not taken from the pool that all others share, but
// have receives of their own, for each connection id on this side. While a
// reader is behind there are none, and the messages stay with the provider.

// plainID is a connection id on this side that an application chose.
type plainID struct {
	id      uint32
	shared  bool
	maxRead int64
	conns   []*Conn // in the order of their peers' addresses
	// receives of lengths, in the device or on their way there: at most most.
	receives []*operation
	most     int
	// full counts the connections for which no more lengths are to come.
	full int
	// closing: the last connection has left, and the device has receives.
	closing bool
}

// plainConn is what an attached connection has beyond others.
type plainConn struct {
	id     *plainID
	writes int   // how many may be under way
	full   bool  // counted in plainID.full
	held   int64 // bytes of the reactor's memory for its messages
	// starved: a payload has no receive, because held is the window.
	starved bool
	// early are payloads that are here before their lengths.
	early []earlyPayload
}

// earlyPayload came to the receive of another connection with the same id.
type earlyPayload struct {
	id   uint32
	data []byte
}

// plainTable has the attached connections of a reactor.
type plainTable struct {
	ids   []*plainID // in order
	count int        // of connections
	// left is closed when the next one leaves.
	left chan struct{}
}

// mostLengths is how many receives the lengths of an id have at a time.
const mostLengths = 8

func (t *plainTable) search(id uint32) (int, bool) {
	return slices.BinarySearchFunc(t.ids, id, func(p *plainID, id uint32) int { return cmp.Compare(p.id, id) })
}

func (p *plainID) search(a fabric.Address) (int, bool) {
	return slices.BinarySearchFunc(p.conns, a, func(c *Conn, a fabric.Address) int { return cmp.Compare(c.peer.address, a) })
}

// from finds the connection with a peer, or nil.
func (p *plainID) from(a fabric.Address) *Conn {
	if i, ok := p.search(a); ok {
		return p.conns[i]
	}
	return nil
}

// enterPlain gives an attached connection its place, or says what to wait for.
func (r *Reactor) enterPlain(c *Conn, k *AttachConfig) (wait <-chan struct{}, err error) {
	t := &r.plain
	i, found := t.search(k.LocalID)
	if t.left == nil {
		t.left = make(chan struct{})
	}
	if found {
		p := t.ids[i]
		other := p.from(c.peer.address)
		switch {
		case p.closing || other != nil && other.over:
			return t.left, nil
		case other != nil:
			return nil, refused(ErrAmbiguous, "there is a connection with this peer and LocalID %d", k.LocalID)
		case !p.shared || !k.Shared:
			return nil, refused(ErrAmbiguous, "another peer has LocalID %d, and not both connections are Shared", k.LocalID)
		case p.maxRead != k.MaxRead:
			return nil, refused(fabric.ErrInvalid, "MaxRead is %d, and %d for the others that share LocalID %d", k.MaxRead, p.maxRead, k.LocalID)
		}
	}
	if most := r.config.MaxConnections; r.table.count+t.count >= most {
		return nil, refused(ErrTooManyConnections, "the limit is %d", most)
	}
	if most := max(r.attributes.MaxOperations/8, 1); !found && len(t.ids) >= most {
		return nil, refused(ErrTooManyConnections, "the device has room for %d different LocalIDs", most)
	}
	if !found {
		p := &plainID{
			id: k.LocalID, shared: k.Shared, maxRead: k.MaxRead,
			most: min(mostLengths, max(r.config.WindowMessages/2, 1)),
		}
		t.ids = slices.Insert(t.ids, i, p)
	}
	p := t.ids[i]
	j, _ := p.search(c.peer.address)
	p.conns = slices.Insert(p.conns, j, c)
	c.plain.id = p
	t.count++
	r.postLengths(p)
	return nil, nil
}

// detach takes out a connection of which the device holds nothing any more.
func (r *Reactor) detach(c *Conn) {
	p := c.plain.id
	if i, ok := p.search(c.peer.address); ok {
		p.conns = slices.Delete(p.conns, i, i+1)
	}
	for _, e := range c.plain.early {
		r.shelf.give(e.data)
	}
	c.plain.early = nil
	if c.plain.full {
		c.plain.full = false
		p.full--
	}
	r.plain.count--
	if p.closing = len(p.conns) == 0; p.closing {
		for _, op := range p.receives {
			if op.posted {
				_ = r.device.Cancel(op.token)
			}
		}
	} else {
		r.postLengths(p)
	}
	r.forgetPlain(p)
}

// forgetPlain forgets an id of which nothing is left, and tells those who wait
// for that.
func (r *Reactor) forgetPlain(p *plainID) {
	if i, ok := r.plain.search(p.id); ok && p.closing && len(p.receives) == 0 {
		r.plain.ids = slices.Delete(r.plain.ids, i, i+1)
	}
	r.plain.tellLeft()
}

// tellLeft wakes those who wait for a connection to leave.
func (t *plainTable) tellLeft() {
	if t.left != nil {
		close(t.left)
		t.left = make(chan struct{})
	}
}

// postLengths queues the receives of lengths that an id may have. Each id may
// have one; beyond that, they share lengthRoom.
func (r *Reactor) postLengths(p *plainID) {
	for !p.closing && p.full == 0 && len(p.receives) < p.most && (len(p.receives) == 0 || r.lengthRoom > 0) {
		op := r.newOperation(nil, plainReceive)
		op.kind, op.plain = fabric.OpTaggedReceive, p
		op.tag, op.ignore = tagged.LengthTag(p.id, 0), tagged.MessageIgnore
		if err := r.fill(op, tagged.LengthSize+r.config.EagerLimit); err != nil {
			r.freeOperation(op)
			for _, c := range p.conns {
				r.failLater(c, err)
			}
			return
		}
		if len(p.receives) > 0 {
			r.lengthRoom--
		}
		p.receives = append(p.receives, op)
		r.hasty = true
		r.shared.push(op)
	}
}

// announced is the end of a receive of a length.
func (r *Reactor) announced(op *operation, done *fabric.Completion) {
	p := op.plain
	if i := slices.Index(p.receives, op); i >= 0 {
		p.receives = slices.Delete(p.receives, i, i+1)
		if len(p.receives) > 0 {
			r.lengthRoom++
		}
	}
	err := done.Err
	if r.failures++; err == nil || p.closing || errors.Is(err, fabric.ErrTruncated) {
		r.failures = 0
	}
	switch c := p.from(done.Source); {
	case err == nil && c != nil && !c.over:
		r.takeLength(c, uint32(done.Tag), op.buf[:done.Len])
	case !errors.Is(err, fabric.ErrCanceled):
		r.stats.Dropped++
		r.log.Debug("weft: message dropped", "tag", done.Tag, "source", done.Source, "error", err)
	}
	r.freeOperation(op)
	switch {
	case p.closing:
		r.forgetPlain(p)
	case r.failures > mostFailures:
		r.breakDownLater(err)
	default:
		r.postLengths(p)
	}
}

// takeLength takes in a length message.
func (r *Reactor) takeLength(c *Conn, id uint32, body []byte) {
	p := c.plain.id
	length, payload, err := tagged.ParseLength(body, p.maxRead, 0)
	if err == nil {
		_, err = c.reads.Arrive(id, inbound{length: length})
	}
	if err == nil {
		c.arrived++
		r.noteFull(c)
		if _, _, first, _, _ := c.reads.Front(); c.plain.full && len(p.receives) == 0 && !first {
			// Lengths match in the order of sending, and all that matched are here.
			err = fmt.Errorf("%d messages after one with id %d that never came", c.reads.Len(), c.reads.Next())
		}
	}
	switch {
	case err != nil:
		r.fail(c, ErrProtocol, err)
	case payload != nil:
		r.arrivedWhole(c, id, payload)
	case !r.takeEarly(c, id):
		r.receivePayload(c, id)
		r.pump(c)
	}
}

// noteFull counts a connection as full if the receives of lengths that there
// may be bring all that its window has room for.
func (r *Reactor) noteFull(c *Conn) {
	p := c.plain.id
	full := !c.over && c.reads.Len() > r.config.WindowMessages-p.most
	if full == c.plain.full {
		return
	}
	if c.plain.full = full; full {
		p.full++
		return
	}
	p.full--
	r.postLengths(p)
}

// prepare finds memory for a payload, and says whether there is any: a waiting
// reader's, or the reactor's own as long as the window has room for it.
func (r *Reactor) prepare(c *Conn, id uint32, in *inbound) bool {
	p := c.plain
	p.held -= in.counted
	in.counted = 0
	if c.failure != nil || c.over || c.locallyClosed {
		return false
	}
	if c.receiving >= mostPayloads {
		c.unposted = true
		return false
	}
	size := in.length
	if p.id.shared {
		// Whatever others send with this tag must fit.
		size = p.id.maxRead
	}
	waiting := id == c.reads.Next() && len(c.readers) > 0 && !c.readers[0].size && in.length <= int64(len(c.readers[0].buf))
	switch {
	case waiting && !p.id.shared:
		in.reader = c.popReader()
		in.data = in.reader.buf[:in.length]
	case waiting || p.held+size <= r.config.WindowBytes:
		in.data = r.shelf.take(int(size))
		in.counted = size
		p.held += size
	default:
		p.starved = true
		return false
	}
	return true
}

// consumed notes that a reader has had a message.
func (r *Reactor) consumed(c *Conn, counted int64) {
	p := c.plain
	p.held -= counted
	if p.starved {
		p.starved, c.unposted = false, true
		r.receiveMore(c)
	}
	r.noteFull(c)
}

// settlePlain does the last step of a Close: there is nobody to confirm it.
func (r *Reactor) settlePlain(c *Conn) {
	if c.locallyClosed && c.writes.Len() == 0 {
		c.acknowledged = true
		r.fail(c, net.ErrClosed, nil)
	}
}
