package efa

import (
	"fmt"
	"net"
)

// CloseWrite ends the writing of this side, in order: what was handed to the
// connection before reaches the peer, which then reads io.EOF, and later writes
// on this side are net.ErrClosed. Reading goes on, and the connection is still
// to be closed.
//
// It does not wait: Close says whether the peer has everything. Writes that
// wait for the reader's credit go out when it comes; a Close before that ends
// them. After Close, the error is net.ErrClosed, and after the connection has
// failed, what ended it; further calls of CloseWrite change nothing.
func (c *Conn) CloseWrite() error {
	r := c.reactor
	var err error
	r.do(func() {
		switch {
		case c.locallyClosed || c.closing.Load():
			err = c.error("close", net.ErrClosed)
		case c.failure != nil:
			err = c.error("close", c.failure)
		default:
			c.writingEnded = true
			r.tellWritten(c)
		}
	})
	return err
}

// tellWritten tells the peer how many messages it can count on, once this side
// has begun the last of them.
func (r *Reactor) tellWritten(c *Conn) {
	if !c.writingEnded || c.writtenTold || c.waiting.head != nil || c.locallyClosed || c.answered || c.failure != nil || c.over {
		return
	}
	c.writtenTold = true
	c.control.send(frameWritten, c.sent)
}

// written takes in that the peer writes no more than count messages; it still
// reads.
func (r *Reactor) written(c *Conn, count uint64) {
	if c.failure != nil || !r.lastMessage(c, count) {
		return
	}
	r.settleEnd(c)
	r.pump(c)
}

// lastMessage notes how many messages the peer writes in all. It is told again
// at every step of the end, and does not change.
func (r *Reactor) lastMessage(c *Conn, count uint64) bool {
	if c.finished && c.remoteCount != count {
		r.fail(c, ErrProtocol, fmt.Errorf("an end after %d messages, and another after %d", c.remoteCount, count))
		return false
	}
	c.finished, c.remoteCount = true, count
	return true
}
