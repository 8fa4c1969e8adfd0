package efa

import (
	"errors"
	"slices"
	"syscall"

	"github.com/weft-go/weft/fabric"
)

// peerIsLost are the codes of the device that mean that the peer of an operation is
// lost. They are in the comment of ErrPeerLost; every other code is ErrTransfer.
var peerIsLost = []fabric.Errno{
	fabric.Errno(syscall.ECONNREFUSED),
	fabric.Errno(syscall.ECONNRESET),
	fabric.Errno(syscall.ECONNABORTED),
	fabric.Errno(syscall.ENOTCONN),
	fabric.Errno(syscall.ESHUTDOWN),
	fabric.Errno(syscall.EPIPE),
	fabric.Errno(syscall.EHOSTUNREACH),
	fabric.Errno(syscall.EHOSTDOWN),
	fabric.Errno(syscall.ENETUNREACH),
	fabric.Errno(syscall.ENETRESET),
	fabric.Errno(syscall.ETIMEDOUT),
	121, // EREMOTEIO, which not all systems have
	269, // FI_ENORX: the receiver was not ready
}

// peerIsLostOnTCP is what becomes of sends that are under way when the peer's endpoint
// is closed or killed. What this side has cancelled ends a connection no more.
const peerIsLostOnTCP = fabric.Errno(syscall.ECANCELED)

// failureKind is what a connection ends with when one of its operations did with
// err.
func failureKind(err error) error {
	var e *fabric.Error
	lost := errors.Is(err, fabric.ErrUnreachable)
	if errors.As(err, &e) {
		lost = lost || slices.Contains(peerIsLost, e.Errno) ||
			coreName(e.Provider) == "tcp" && e.Errno == peerIsLostOnTCP
	}
	if lost {
		return ErrPeerLost
	}
	return ErrTransfer
}

// broke says what an operation that failed makes of its connection.
func (c *Conn) broke(err error) *ConnError {
	return &ConnError{Op: "write", Peer: c.RemoteAddr(), Kind: failureKind(err), Cause: err}
}

// fatal says whether an error of a device as a whole is one: some tell in this way
// that they could not answer a peer, or that one asked for memory that it may not have.
func fatal(err error) bool {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(several.Unwrap(), fatal)
	}
	return !errors.Is(failureKind(err), ErrPeerLost) && !errors.Is(err, syscall.EACCES)
}

// eventsOf are the errors of a device that end its use; others are logged.
func (r *Reactor) eventsOf(device fabric.Device) error {
	r.stats.Crossings++
	err := device.Errors()
	if err != nil && !fatal(err) {
		r.log.Warn("weft: device did not answer a peer", "error", err)
		return nil
	}
	return err
}

// mostStalled bounds what is remembered of peers that may never be dialed again.
const mostStalled = 4096

// stall notes that a message to a peer has failed, where that peer then waits for it
// and keeps what is sent later: nothing can be sent to it any more, on no
// connection, until one of the two has another endpoint.
func (r *Reactor) stall(p *peer, err error) {
	if r.stalled[p.name] != nil {
		return
	}
	if len(r.stalled) == mostStalled {
		for name := range r.stalled {
			delete(r.stalled, name)
			break
		}
	}
	r.stalled[p.name] = err
	r.later(func() {
		for _, c := range slices.Collect(r.connections()) {
			if c.hasPeer(p) && !(c.peerClosed && c.failure == nil) {
				broke := c.broke(err)
				r.fail(c, broke.Kind, broke.Cause)
			}
		}
	})
}

// undecided says whether the end of an operation is left open, because the peer has closed in
// order: what has arrived may be reported as lost when the peer's endpoint has gone before
// the device has heard so. The control connection tells, if it has not yet: the peer
// confirms what it has (confirm), or is lost (hangUp, fail). Of writes to its memory it confirms
// nothing; but one that tells of itself is for a peer that waits for that, and one that goes
// in order does not. One that has all messages may have been killed.
func (r *Reactor) undecided(op *operation, err error) bool {
	c := op.conn
	tells := op.purpose == remoteAccess && op.flags&fabric.Immediate != 0
	switch {
	case op.purpose != messageSend && op.purpose != controlSend && op.purpose != matchedSend && !tells:
		return false
	case !c.peerClosed || c.failure != nil || !errors.Is(failureKind(err), ErrPeerLost):
		return false
	case c.settled(op):
		r.ended(op, nil)
	case c.over || c.hungUp:
		return false
	default:
		c.undecided = append(c.undecided, undecided{op, err})
	}
	return true
}

// undecided is a send, or a write to the peer's memory, with an error that may be none.
type undecided struct {
	op  *operation
	err error
}

// settled says whether an operation that may have failed or not has not.
func (c *Conn) settled(op *operation) bool {
	if op.purpose == remoteAccess {
		return c.confirmed
	}
	return c.acknowledged
}

// decide ends what was left open.
func (r *Reactor) decide(c *Conn) {
	all := c.undecided
	c.undecided = nil
	for _, u := range all {
		if c.settled(u.op) {
			u.err = nil
		}
		r.ended(u.op, u.err)
	}
}

// hasPeer says whether a connection goes to an address.
func (c *Conn) hasPeer(p *peer) bool {
	for i := range c.rails {
		if c.rails[i].peer == p {
			return true
		}
	}
	return c.peer == p
}

// giveUpPlace has another connection take the place of one of which the device keeps
// messages. Some providers keep for good what their receiver has not fetched when it
// is gone, and then nobody would have the place again. Their memory stays theirs,
// and so does the address, until they let go or the device is closed. Receives they
// do let go of, and one that is posted could take what is for the next connection.
func (r *Reactor) giveUpPlace(c *Conn) {
	if !c.over {
		return
	}
	for op := c.operations; op != nil; op = op.next {
		if op.purpose == payloadReceive {
			return
		}
	}
	r.retire(c)
	r.table.remove(c)
	r.tellEmptied()
}

// breakDownLater is breakDown for where lists are being worked on.
func (r *Reactor) breakDownLater(err error) { r.later(func() { r.breakDown(err) }) }

// breakDown ends everything: the device is of no use any more.
func (r *Reactor) breakDown(err error) {
	if r.broken != nil {
		return
	}
	r.log.Error("weft: device failed", "error", err)
	r.endUse(&DeviceError{Err: err})
	r.endAll(r.broken)
	r.tellEmptied()
}

// endUse notes, once, why the device is of no use any more.
func (r *Reactor) endUse(why error) {
	r.broken = why
	close(r.done)
}

// over is why the device is of no use any more, if it is not. It is for those who do not
// have the role.
func (r *Reactor) over() error {
	select {
	case <-r.done:
		return r.broken
	default:
		return nil
	}
}
