package efa

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"github.com/weft-go/weft/fabric"
)

// Exposure is memory of this side that peers may read and write, until Close.
type Exposure struct {
	registration fabric.RemoteRegistration
	pinner       runtime.Pinner
	// Remote is what to tell them, for their Progress.Read and Progress.Write.
	Remote fabric.Remote
	lent   *arenaExposure // of Borrow
}

// Expose lets peers read and write buf, which is not empty and must stay as it is until
// Close of the exposure. On a device that can do neither, it is fabric.ErrNotSupported.
func (p Progress) Expose(buf []byte) (*Exposure, error) {
	registration, err := p.reactor.registerRemote(buf)
	if err != nil {
		return nil, err
	}
	e := &Exposure{registration: registration}
	if e.Remote, err = registration.RemoteOf(buf); err != nil {
		_ = registration.Close()
		return nil, err
	}
	e.pinner.Pin(&buf[0])
	return e, nil
}

// Close ends an exposure of [Progress.Expose]: peers that still use it get an error. It is
// called in the progress role. One of Borrow is the reactor's, which may have lent it to
// others as well: it is returned, and not closed.
func (e *Exposure) Close() error {
	if e.lent != nil {
		return fmt.Errorf("efa: %w: an exposure of Borrow is given back by Return", fabric.ErrInvalid)
	}
	return e.end()
}

func (e *Exposure) end() error {
	if err := e.registration.Close(); err != nil {
		return err
	}
	e.pinner.Unpin()
	return nil
}

func (r *Reactor) registerRemote(buf []byte) (fabric.RemoteRegistration, error) {
	device, ok := r.device.(fabric.RemoteDevice)
	if !ok || !r.attributes.RemoteReads && !r.attributes.RemoteWrites {
		return nil, fabric.ErrNotSupported
	}
	r.stats.Crossings++
	return device.RegisterRemote(buf)
}

// reachable says why memory of a connection's peer cannot be used, if so.
func (c *Conn) reachable(op string) error {
	switch {
	case c.failure != nil:
		return c.error(op, c.failure)
	case c.over || c.locallyClosed:
		return c.error(op, net.ErrClosed)
	}
	return nil
}

// access begins a read or a write of the peer's memory. local is an exposure that buf
// is part of, or nil.
func (r *Reactor) access(op *operation, buf []byte, local *Exposure) error {
	op.buf = buf
	switch {
	case local != nil:
		op.descriptor, op.fixed = local.registration.Descriptor(), true
	case r.attributes.NeedsRegistration:
		registration, err := r.registerRemote(buf)
		if err != nil {
			r.freeOperation(op)
			return err
		}
		op.pinner.Pin(&buf[0])
		op.registration, op.descriptor, op.fixed = registration, registration.Descriptor(), true
	default:
		// A runtime.Pinner would be kept for each slot of the device's queue, for nothing.
		op.fixed = fabric.ArenaOf(buf) != nil
	}
	op.conn.gathering = nil
	r.arbiter.Push(&op.conn.queue, op)
	return nil
}

// accessEnded is the end of a read or a write of a peer's memory.
func (r *Reactor) accessEnded(op *operation, err error) {
	c, accessor, stranded := op.conn, op.accessor, op.stranded
	switch {
	case err != nil:
		var failed *fabric.Error
		if op.kind == fabric.OpWrite && errors.As(err, &failed) {
			// Who reads may go on in another way, whatever it was.
			err = c.broke(err)
		}
	case op.kind == fabric.OpRead:
		r.stats.Reads++
		r.stats.BytesRead += uint64(len(op.buf))
	default:
		r.stats.Writes++
		r.stats.BytesWritten += uint64(len(op.buf))
	}
	r.freeOperation(op)
	if stranded != nil {
		stranded.accessEnded()
	} else {
		accessor.Sent(Progress{r}, err)
	}
	r.releaseConn(c)
}

// stranded are the accesses of one Sender that the device does not let go of.
type stranded struct {
	accesses int
	released chan struct{}
}

func (s *stranded) accessEnded() {
	if s.accesses--; s.accesses == 0 {
		close(s.released)
	}
}

// giveUpAccesses ends the waits for reads and writes that the device does not let go
// of.
func (r *Reactor) giveUpAccesses(c *Conn) {
	of := make(map[Sender]*stranded)
	var given []*operation
	for op := c.operations; op != nil; op = op.next {
		if op.purpose != remoteAccess || op.stranded != nil {
			continue
		}
		if of[op.accessor] == nil {
			of[op.accessor] = &stranded{released: make(chan struct{})}
		}
		op.stranded = of[op.accessor]
		op.stranded.accesses++
		given = append(given, op)
	}
	for _, op := range given {
		why := "read"
		if op.kind == fabric.OpWrite {
			why = "write"
		}
		op.accessor.Sent(Progress{r}, &InFlightError{Err: c.error(why, c.failure), Released: op.stranded.released})
	}
}
