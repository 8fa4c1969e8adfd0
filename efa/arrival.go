package efa

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// completed sorts the completion of an operation.
func (r *Reactor) completed(op *operation, done *fabric.Completion) {
	if r.attributes.MasksMissWaiting && done.HasImmediate {
		done.Tag = done.Immediate
	}
	switch op.purpose {
	case lengthReceive:
		r.lengthArrived(op.brought(done), done)
		r.receiveAgain(op, done.Err)
	case controlReceive:
		r.controlArrived(op.brought(done), done)
		r.receiveAgain(op, done.Err)
	case payloadReceive:
		if op.conn.plain == nil || !r.sorted(op, done) {
			r.payloadArrived(op, done)
		}
	case plainReceive:
		r.announced(op, done)
	case matchedReceive:
		r.matched(op, done)
	default:
		if done.Err != nil && r.attributes.StallsAfterFailure && op.conn != nil && op.purpose != remoteAccess {
			r.stall(op.peer(), done.Err)
		}
		if done.Err == nil || !r.undecided(op, done.Err) {
			r.ended(op, done.Err)
		}
	}
}

// brought is what a receive has brought.
func (op *operation) brought(done *fabric.Completion) []byte {
	if done.Err != nil {
		return nil
	}
	return op.buf[:done.Len]
}

// mostFailures is how many shared receives may fail in a row before the device
// counts as broken.
const mostFailures = 1024

// receiveAgain posts a shared receive anew.
func (r *Reactor) receiveAgain(op *operation, err error) {
	// Anybody can send what is too long; that says nothing about the device.
	if r.failures++; err == nil || errors.Is(err, fabric.ErrTruncated) {
		r.failures = 0
	}
	if r.failures > mostFailures {
		r.breakDownLater(err)
		return
	}
	r.hasty = r.hasty || op.purpose != lengthReceive
	r.shared.push(op)
}

// ended is the end of an operation that brought no data: one that was sent, or
// one that the device never took or let go of.
func (r *Reactor) ended(op *operation, err error) {
	c := op.conn
	switch op.purpose {
	case payloadReceive:
		r.payloadArrived(op, &fabric.Completion{Err: err})
		return
	case remoteAccess:
		r.accessEnded(op, err)
		return
	case matchedSend:
		r.freeOperation(op)
		if err != nil && c.failure == nil {
			r.failLater(c, err)
		}
		r.releaseConn(c)
		return
	case matchedReceive:
		r.neverMatched(op, err)
		return
	case messageSend, controlSend:
		gone := operation{purpose: op.purpose, tag: op.tag, ticket: op.ticket, write: op.write, group: op.group, ahead: op.ahead, lane: op.lane}
		// First out of the list, so that an end that this brings about finds
		// the connection without it.
		r.freeOperation(op)
		r.sendEnded(c, &gone, err)
		r.releaseConn(c)
		return
	}
	if err != nil && !r.closed.Load() {
		// Without the shared receives nothing arrives any more.
		r.breakDownLater(err)
	}
	r.freeOperation(op)
}

// lengthArrived takes in a length message, which is read during the call only.
func (r *Reactor) lengthArrived(message []byte, done *fabric.Completion) {
	c, id := r.sender(done, tagged.KindLength)
	if c == nil {
		return
	}
	if c.gathers && tagged.IsGroup(message) {
		if err := r.groupArrived(c, id, message); err != nil {
			r.fail(c, ErrProtocol, err)
		}
		return
	}
	length, payload, err := tagged.ParseLength(message, r.config.MaxMessage, c.eagerLimit)
	if err == nil {
		err = r.announce(c, id, length)
	}
	if err != nil {
		r.fail(c, ErrProtocol, err)
		return
	}
	if payload != nil {
		r.arrivedWhole(c, id, payload)
		return
	}
	r.receivePayload(c, id)
	r.pump(c)
}

// announce notes a message whose length has arrived, or says what is wrong.
func (r *Reactor) announce(c *Conn, id uint32, length int64) error {
	if length > r.config.MaxMessage {
		return &tagged.LengthError{Problem: tagged.LengthAboveMaximum, Length: length, Limit: r.config.MaxMessage}
	}
	if err := c.granting.Arrived(length); err != nil {
		return err
	}
	if c.arrived++; c.finished && c.arrived > c.remoteCount {
		return fmt.Errorf("a message after the last of %d", c.remoteCount)
	}
	if c.arrived == invitedAfter && c.features&featureBeside != 0 {
		r.invite(c)
	}
	c.stats.arrival(id)
	_, err := c.reads.Arrive(id, inbound{length: length})
	return err
}

// sender finds the connection that a message belongs to, and checks that its
// peer sent it.
func (r *Reactor) sender(done *fabric.Completion, want tagged.Kind) (c *Conn, id uint32) {
	if done.Err == nil {
		kind, connection, n := tagged.ParseTag(done.Tag)
		if c = r.table.find(connection); c != nil && kind == want && c.peer != nil && c.peer.address == done.Source && !c.over {
			return c, n
		}
	}
	// A connection that has ended, somebody who is not the peer, or a message
	// that is too long for any: nothing that a connection should suffer from.
	r.stats.Dropped++
	r.logDropped(done)
	return nil, 0
}

// arrivedWhole takes in a message that came with its length.
func (r *Reactor) arrivedWhole(c *Conn, id uint32, payload []byte) {
	in, _ := c.reads.Get(id)
	c.stats.ReceivedBytes += uint64(len(payload))
	front := id == c.reads.Next()
	var reader *call
	n, direct := 0, true
	switch {
	case front && c.handler != nil && !c.held && !c.locallyClosed && c.handler.Message(Progress{r}, payload):
	case front && c.readerFor(int64(len(payload))):
		reader = c.popReader()
		n = copy(reader.buf, payload)
	default:
		in.data = r.shelf.take(len(payload))
		copy(in.data, payload)
		in.whole, direct = true, false
	}
	_ = c.reads.Finish(id, nil)
	c.received++
	if direct {
		c.stats.Direct++
		r.consume(c)
	}
	if reader != nil {
		reader.finish(n, nil)
	}
	r.pump(c)
	r.answerFlush(c)
	r.settleEnd(c)
}
