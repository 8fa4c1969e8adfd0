package efa

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// Matched messages are for an engine that leaves matching to the device (package comm):
// tagged messages with neither of the marks that those of connections have
// (tagged.MatchedTag), so that the receives of one kind never take the other. They go
// over the first device, in order with what else is sent on a connection, and from
// buffers of the reactor's into buffers of the reactor's. There is no credit for them:
// who sends them sees to it that the peer has room.

// MatchHandler hears of the end of a receive of Progress.Match.
type MatchHandler interface {
	// Matched is called once, in the progress role, never in a call of Match or
	// Unmatch.
	Matched(p Progress, m Matched)
}

// Matched is what became of a receive.
type Matched struct {
	Tag uint64
	// Message is the reactor's, and may be read during the call only.
	Message []byte
	// Err says that there is none: fabric.ErrCanceled after Unmatch,
	// fabric.ErrTruncated if what came was longer than any peer may send,
	// net.ErrClosed when the reactor was closed, or what the device says.
	Err error

	source fabric.Address
}

// From says whether the message is of that peer.
func (m *Matched) From(p *MatchPeer) bool { return p != nil && p.peer.address == m.source }

// MatchPeer keeps the address of a connection's peer known to the device, also when
// the connection has ended: what the device has of the peer's can still be told from
// what others send.
type MatchPeer struct{ peer *peer }

// MatchReceive names a receive of Progress.Match until its end.
type MatchReceive struct{ op *operation }

// CanMatch says why matching cannot be left to the device: a *DeviceError that is
// fabric.ErrNotSupported. It is nil if it can be.
func (r *Reactor) CanMatch() error {
	why := ""
	switch {
	case r.attributes.MasksMissWaiting:
		why = "receives with a mask miss messages that came before them"
	case !r.attributes.KeepsOrder:
		why = "messages do not match in the order of sending"
	default:
		return nil
	}
	return &DeviceError{Err: fmt.Errorf("matching by %s: %w: %s", r.attributes.Provider, fabric.ErrNotSupported, why)}
}

// MatchRoom is how many receives of Progress.Match the device has room for beside all
// others. It does not change.
func (r *Reactor) MatchRoom() int {
	all := r.attributes.MaxOperations
	return max((all-min(all/2, lengthBuffers+controlBuffers)-all/4)/2, 1)
}

// MatchPeer keeps the peer of a connection known until Forget; nil if it is not any
// more.
func (p Progress) MatchPeer(c *Conn) *MatchPeer {
	if c.released || c.peer == nil {
		return nil
	}
	c.peer.refs++
	return &MatchPeer{c.peer}
}

// Forget ends what MatchPeer began.
func (p Progress) Forget(m *MatchPeer) {
	if m != nil {
		p.reactor.remove(m.peer)
	}
}

// SendMatched copies head and payload, and sends them as one message with that tag, of
// tagged.MatchedTag, behind all others of the connection. Together they must not be
// longer than the EagerLimit. That it cannot be carried ends the connection. With an
// error nothing was taken.
func (p Progress) SendMatched(c *Conn, tag uint64, head, payload []byte) error {
	r := p.reactor
	if err := r.writable(c); err != nil {
		return err
	}
	if tag&tagged.KControl != 0 {
		return fmt.Errorf("efa: %w: tag %#x is not that of a matched message", fabric.ErrInvalid, tag)
	}
	n := len(head) + len(payload)
	if n > c.eagerLimit {
		return &MessageSizeError{Size: int64(n), Limit: int64(c.eagerLimit), Writing: true}
	}
	op := r.newOperation(c, matchedSend)
	if err := r.fill(op, n); err != nil {
		r.freeOperation(op)
		return c.error("write", err)
	}
	copy(op.buf[copy(op.buf, head):], payload)
	op.tag, op.kind = tag, r.sendKind(n)
	c.gathering = nil
	r.arbiter.Push(&c.queue, op)
	r.stats.MatchedSent++
	return nil
}

// Match posts a receive for a matched message of any peer, behind those posted before,
// and h hears of its end. With an error nothing was posted.
func (p Progress) Match(tag, ignore uint64, h MatchHandler) (MatchReceive, error) {
	r := p.reactor
	if r.broken != nil {
		return MatchReceive{}, r.broken
	}
	op := r.newOperation(nil, matchedReceive)
	if err := r.fill(op, tagged.LengthSize+r.config.EagerLimit); err != nil {
		r.freeOperation(op)
		return MatchReceive{}, &DeviceError{Err: err}
	}
	op.kind, op.tag, op.ignore, op.match = fabric.OpTaggedReceive, tag, ignore, h
	r.hasty = true
	r.shared.push(op)
	return MatchReceive{op}, nil
}

// Unmatch asks for a receive back: it ends with fabric.ErrCanceled, or with a message
// that was there first. false says that the device does not answer any more, and
// nobody hears of it before the reactor is closed.
func (p Progress) Unmatch(m MatchReceive) bool {
	r, op := p.reactor, m.op
	switch {
	case op.posted:
		r.cancel(op)
	case !op.withdrawn:
		op.withdrawn = true
		r.withdrawn++
		r.hasty = true
	}
	return r.broken == nil
}

// Hand has another handler hear of the end of a receive.
func (m MatchReceive) Hand(h MatchHandler) { m.op.match = h }

// Stranger counts a message that was matched, and whose sender is not who it says.
func (p Progress) Stranger(m Matched) {
	r := p.reactor
	r.stats.Dropped++
	r.logDropped(&fabric.Completion{Tag: m.Tag, Source: m.source, Err: m.Err})
}

// wanted leaves those of the gathered receives that are to be posted.
func (r *Reactor) wanted(dst []*operation) int {
	if r.withdrawn == 0 {
		return len(dst)
	}
	kept := 0
	for _, op := range dst {
		if op.withdrawn {
			r.ended(op, fabric.ErrCanceled)
			continue
		}
		dst[kept] = op
		kept++
	}
	return kept
}

// matched is the end of a matched receive in the device.
func (r *Reactor) matched(op *operation, done *fabric.Completion) {
	err := done.Err
	m := Matched{Tag: done.Tag, Err: err, source: done.Source}
	if err == nil {
		m.Message = op.buf[:done.Len]
		r.stats.MatchedReceived++
	}
	if r.failures++; err == nil || errors.Is(err, fabric.ErrCanceled) || errors.Is(err, fabric.ErrTruncated) {
		r.failures = 0
	}
	op.match.Matched(Progress{r}, m)
	r.freeOperation(op)
	if r.failures > mostFailures {
		r.breakDownLater(err)
	}
}

// neverMatched is the end of a matched receive that the device never had, or has let go
// of without a word.
func (r *Reactor) neverMatched(op *operation, err error) {
	if op.withdrawn {
		r.withdrawn--
		err = fabric.ErrCanceled
	} else if r.failures++; !r.closed.Load() && r.failures > mostFailures {
		r.breakDownLater(err)
	}
	op.match.Matched(Progress{r}, Matched{Err: err})
	r.freeOperation(op)
}
