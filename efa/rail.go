package efa

import (
	"slices"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// Rails are devices beside the reactor's first one, which carry a part of the
// payloads of long messages (Config.Rails). Lengths, control messages and everything
// that is short stay on the first device. A payload goes in pieces, all with the same
// tag, and which of the devices has a piece follows from the message's length and id
// and the number of the piece, on both sides: lane. So the order of messages matters
// on each device by itself only, as if there was no other.
//
// A rail has no shared receives, and is driven only where it has something to do: a
// turn of it is a crossing of its own.

// rail is one of them. All of it but its waiting belongs to the progress role.
type rail struct {
	index      int // in Reactor.rails
	device     fabric.Device
	attributes fabric.Attributes
	address    []byte
	peers      map[string]*peer

	// What is to be posted, and how much more of it may be in the device, half of
	// which may be for pieces of which an earlier one is on its way.
	receives                  operationQueue
	sends                     tagged.Arbiter[*operation]
	receiveRoom, sendRoom     int
	aheadReceives, aheadSends int

	inFlight int // operations in the device
	// used: a connection has agreed on it. Peers may have something on its way to it
	// from then on, also when that connection has ended.
	used   bool
	turns  uint64
	broken error
	closed bool

	waiting railWaiting
	stats   RailStats
}

// connRail is what a connection has on a rail.
type connRail struct {
	*rail
	peer  *peer
	queue tagged.Queue[*operation] // in rail.sends
}

const (
	// railPiece is Config.railPiece where it is not given, and railLook how many turns
	// of the reactor pass at most until a rail on which nothing is under way has one:
	// its provider may still have to answer the peer's.
	railPiece = 256 << 10
	railLook  = 16
)

func newRail(device fabric.Device) *rail {
	l := &rail{
		device: device, attributes: device.Attributes(), address: device.LocalAddress(),
		peers: make(map[string]*peer),
	}
	// Neither sends nor receives can take the room of the others while they wait.
	l.receiveRoom = l.attributes.MaxOperations / 2
	l.sendRoom = l.attributes.MaxOperations - l.receiveRoom
	l.aheadReceives, l.aheadSends = l.receiveRoom/2, l.sendRoom/2
	l.stats.Domain = l.attributes.Domain
	return l
}

// busy says that a turn of the rail may bring something, and offered that it has
// something to post and room for it.
func (l *rail) busy() bool { return l.broken == nil && (l.inFlight > 0 || l.offers()) }

func (l *rail) offers() bool {
	return l.broken == nil && (l.sendRoom > 0 && !l.sends.Empty() || l.receiveRoom > 0 && !l.receives.empty())
}

// railsBusy and railsOffer say it of any.
func (r *Reactor) railsBusy() bool {
	for _, l := range r.rails {
		if l.busy() {
			return true
		}
	}
	return false
}

func (r *Reactor) railsOffer() bool {
	for _, l := range r.rails {
		if l.offers() {
			return true
		}
	}
	return false
}

// lane says which device carries a piece of a message of n bytes: 0 is the first one,
// others are the connection's rails from 1 on. What is shorter than a piece stays on
// the first. Messages begin on different ones, so that those of one piece are spread
// as well.
func (c *Conn) lane(n int64, id uint32, piece int) uint8 {
	if len(c.rails) == 0 || n < int64(c.piece) {
		return 0
	}
	return uint8((uint64(id) + uint64(piece)) % uint64(len(c.rails)+1))
}

// rail is the one that an operation is for, nil for the first device.
func (op *operation) rail() *connRail {
	if op.lane == 0 {
		return nil
	}
	return &op.conn.rails[op.lane-1]
}

// peer is whom an operation of a connection is with.
func (op *operation) peer() *peer {
	if l := op.rail(); l != nil {
		return l.peer
	}
	return op.conn.peer
}

// deviceOf is what an operation is for.
func (r *Reactor) deviceOf(op *operation) fabric.Device {
	if l := op.rail(); l != nil {
		return l.device
	}
	return r.device
}

// cancel asks the device for an operation back.
func (r *Reactor) cancel(op *operation) {
	_ = r.deviceOf(op).Cancel(op.token)
	r.stats.Crossings++
}

// pushReceive queues the receive of a payload, and pushPart a payload of which the
// length was posted.
func (r *Reactor) pushReceive(op *operation) { r.receivesOf(op).push(op) }

func (r *Reactor) receivesOf(op *operation) *operationQueue {
	if l := op.rail(); l != nil {
		return &l.receives
	}
	return &r.payloads
}

func (r *Reactor) pushPart(op *operation) {
	op.announced = true
	if l := op.rail(); l != nil {
		l.sends.Push(&l.queue, op)
	} else {
		r.halves.Push(&op.conn.halves, op)
	}
}

// putBackPart is for one that was refused.
func (r *Reactor) putBackPart(op *operation) {
	if l := op.rail(); l != nil {
		l.sends.PutBack(&l.queue, op)
	} else {
		r.halves.PutBack(&op.conn.halves, op)
	}
}

// receivesAhead and sendsAhead are the room for pieces of which an earlier one is on
// its way, on a connection's lane.
func (r *Reactor) receivesAhead(c *Conn, lane uint8) *int {
	if lane > 0 {
		return &c.rails[lane-1].aheadReceives
	}
	return &r.aheadRoom
}

func (r *Reactor) sendsAhead(c *Conn, lane uint8) *int {
	if lane > 0 {
		return &c.rails[lane-1].aheadSends
	}
	return &r.sendRoom
}

// took notes that the device has an operation, and letGo that it has it no more.
func (r *Reactor) took(op *operation) {
	receives := op.purpose == payloadReceive
	switch l := op.rail(); {
	case l == nil && receives:
		r.payloadRoom--
		r.lookouts.device++
	case l == nil:
		if op.posted {
			r.lookouts.device++
		}
		if op.isPayload && len(r.rails) > 0 {
			r.carried.SentBytes += uint64(len(op.buf))
		}
	case receives:
		l.receiveRoom--
		l.inFlight++
	default:
		l.sendRoom--
		l.inFlight++
		l.stats.SentBytes += uint64(len(op.buf))
	}
}

func (r *Reactor) letGo(op *operation) {
	if !op.posted {
		return
	}
	op.posted = false
	receives := op.purpose == payloadReceive
	switch l := op.rail(); {
	case op.conn == nil:
	case l == nil && receives:
		r.payloadRoom++
		r.lookouts.device--
	case l == nil:
		r.lookouts.device--
	case receives:
		l.receiveRoom++
		l.inFlight--
	default:
		l.sendRoom++
		l.inFlight--
	}
}

// countCarried counts a piece that is here.
func (r *Reactor) countCarried(c *Conn, lane uint8, n int) {
	switch {
	case lane > 0:
		c.rails[lane-1].stats.ReceivedBytes += uint64(n)
	case len(r.rails) > 0:
		r.carried.ReceivedBytes += uint64(n)
	}
}

// registerOnRails makes memory known to each rail that works, until it is closed.
func (r *Reactor) registerOnRails(memory []byte) ([]fabric.Descriptor, error) {
	descriptors := make([]fabric.Descriptor, len(r.rails))
	for i, l := range r.rails {
		if l.broken != nil {
			continue
		}
		r.stats.Crossings++
		region, err := l.device.Register(memory)
		if err != nil {
			return nil, err
		}
		descriptors[i] = region.Descriptor()
	}
	return descriptors, nil
}

// railStats are what the devices carried, the first one first.
func (r *Reactor) railStats() []RailStats {
	if len(r.rails) == 0 {
		return nil
	}
	first := r.carried
	first.Domain = r.attributes.Domain
	all := []RailStats{first}
	for _, l := range r.rails {
		all = append(all, l.stats)
	}
	return all
}

// stepRails takes a turn of each rail that may have something to do, and says how much
// happened. With all, or at times, those of which only the peers know whether they
// have are turned as well.
func (r *Reactor) stepRails() (happened int) {
	all := r.lookAround || r.turns%railLook == 0
	for _, l := range r.rails {
		if l.busy() || all && l.used && l.broken == nil {
			happened += r.stepRail(l)
		}
	}
	return happened
}

// stepRail takes a turn of a rail.
func (r *Reactor) stepRail(l *rail) int {
	receives := r.batch[:min(batchSize/2, max(l.receiveRoom, 0))]
	n := r.live(receives[:l.receives.gather(receives)])
	sends := r.batch[n : n+min(batchSize/2, max(l.sendRoom, 0))]
	n += r.live(sends[:l.sends.Gather(sends, quota)])
	posted, reaped, err := r.turn(l.device, n, r.completions, 0)
	l.turns++
	if reaped > 0 && !r.attributes.Notifies {
		// Who naps goes by the first device.
		r.device.Wake()
	}
	if err == nil && l.turns%eventsEvery == 0 {
		err = r.eventsOf(l.device)
	}
	if err != nil {
		r.breakRail(l, err)
	}
	return posted + reaped
}

// breakRail ends the connections that use a rail: its device is of no use any more.
// The others go on.
func (r *Reactor) breakRail(l *rail, err error) {
	if l.broken != nil {
		return
	}
	domain := l.attributes.Domain
	if domain == "" {
		domain = printable(l.address)
	}
	r.log.Error("weft: rail failed", "domain", domain, "error", err)
	l.broken = &DeviceError{Err: err, Rail: domain}
	for _, c := range slices.Collect(r.connections()) {
		if c.uses(l) {
			r.fail(c, l.broken, nil)
		}
	}
	if err := r.closeRail(l, l.broken); err != nil {
		r.log.Warn("weft: closing a rail", "domain", domain, "error", err)
	}
}

// uses says whether a connection has agreed on a rail.
func (c *Conn) uses(l *rail) bool {
	for i := range c.rails {
		if c.rails[i].rail == l {
			return true
		}
	}
	return false
}

// closeRail closes a rail, and ends what it had.
func (r *Reactor) closeRail(l *rail, why error) error {
	l.waiting.stop()
	l.closed = true
	err := l.device.Close()
	// They are ended here, and the queues are of no use any more.
	l.sends, l.receives = tagged.Arbiter[*operation]{}, operationQueue{}
	for _, op := range r.operations.all {
		if op.purpose != 0 && op.lane > 0 && op.rail().rail == l {
			r.letGo(op)
			r.ended(op, why)
		}
	}
	clear(l.peers)
	return err
}

// removeFromRail removes a peer of a rail, once what it had sent has been taken in if
// the provider would look for it in its memory.
func (r *Reactor) removeFromRail(p *peer) {
	l := p.rail
	if p.lost && l.attributes.KeepLostPeers {
		p.refs++
		time.AfterFunc(letGo, func() {
			r.submit(func() {
				if p.lost = false; l.broken == nil && r.broken == nil {
					r.stepRail(l)
				}
				r.remove(p)
			})
		})
		return
	}
	delete(l.peers, p.name)
	r.removeFrom(l.device, p)
}
