package efa

import (
	"net"
	"runtime"

	"github.com/weft-go/weft/fabric"
)

// Exposure is memory of this side that peers may read, until Close.
type Exposure struct {
	registration fabric.RemoteRegistration
	pinner       runtime.Pinner
	// Remote is what to tell them, for their Progress.Read.
	Remote fabric.Remote
}

// CanRead says whether Expose and Read can be used: the device reads memory of peers,
// and they its. It does not change.
func (r *Reactor) CanRead() bool { return r.attributes.RemoteReads }

// Expose lets peers read buf, which is not empty and must stay as it is until Close of
// the exposure. On a device that cannot, it is fabric.ErrNotSupported.
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

// Close ends the exposure: peers that still read get an error. It is called in the
// progress role.
func (e *Exposure) Close() error {
	e.pinner.Unpin()
	return e.registration.Close()
}

func (r *Reactor) registerRemote(buf []byte) (fabric.RemoteRegistration, error) {
	device, ok := r.device.(fabric.RemoteDevice)
	if !ok || !r.attributes.RemoteReads {
		return nil, fabric.ErrNotSupported
	}
	r.stats.Crossings++
	return device.RegisterRemote(buf)
}

// Read reads as much of the peer's memory as there is room for in dst, behind what was
// sent on the connection before. dst is the reactor's until s.Sent is called, never in
// this call: with nil, or with why it could not be read, which does not end the
// connection. An *InFlightError says that the device still has dst, and other memory
// that s has reads under way into, until its Released is closed. With an error
// nothing was begun. One read is at most Conn.MaxRead bytes long.
func (p Progress) Read(c *Conn, dst []byte, from fabric.Remote, s Sender) error {
	r := p.reactor
	if c.failure != nil {
		return c.error("read", c.failure)
	}
	if c.over || c.locallyClosed {
		return c.error("read", net.ErrClosed)
	}
	if !r.attributes.RemoteReads {
		return fabric.ErrNotSupported
	}
	op := r.newOperation(c, remoteRead)
	op.kind, op.remote, op.reader = fabric.OpRead, from, s
	op.buf = dst
	if r.attributes.NeedsRegistration {
		registration, err := r.registerRemote(dst)
		if err != nil {
			r.freeOperation(op)
			return err
		}
		op.pinner.Pin(&dst[0])
		op.registration, op.descriptor, op.fixed = registration, registration.Descriptor(), true
	}
	c.gathering = nil
	r.arbiter.Push(&c.queue, op)
	return nil
}

// MaxRead is the most bytes that Progress.Read reads at once.
func (c *Conn) MaxRead() int { return int(min(c.reactor.attributes.MaxMessage, 1<<30)) }

// readEnded is the end of a read of a peer's memory.
func (r *Reactor) readEnded(op *operation, err error) {
	c, reader, stranded := op.conn, op.reader, op.stranded
	if err == nil {
		r.stats.Reads++
		r.stats.BytesRead += uint64(len(op.buf))
	}
	r.freeOperation(op)
	if stranded != nil {
		stranded.readEnded()
	} else {
		reader.Sent(Progress{r}, err)
	}
	r.releaseConn(c)
}

// stranded are the reads of one Sender that the device does not let go of.
type stranded struct {
	reads    int
	released chan struct{}
}

func (s *stranded) readEnded() {
	if s.reads--; s.reads == 0 {
		close(s.released)
	}
}

// giveUpReads ends the waits for reads that the device does not let go of.
func (r *Reactor) giveUpReads(c *Conn) {
	of := make(map[Sender]*stranded)
	var given []*operation
	for op := c.operations; op != nil; op = op.next {
		if op.purpose != remoteRead || op.stranded != nil {
			continue
		}
		if of[op.reader] == nil {
			of[op.reader] = &stranded{released: make(chan struct{})}
		}
		op.stranded = of[op.reader]
		op.stranded.reads++
		given = append(given, op)
	}
	for _, op := range given {
		op.reader.Sent(Progress{r}, &InFlightError{Err: c.error("read", c.failure), Released: op.stranded.released})
	}
}
