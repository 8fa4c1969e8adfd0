package efa

import "github.com/weft-go/weft/fabric"

// CanWrite says whether Write can be used: the device writes to memory of peers, and they
// to its. It does not change.
func (r *Reactor) CanWrite() bool { return r.attributes.RemoteWrites }

// CanTell says whether a write can carry an immediate.
func (r *Reactor) CanTell() bool { return r.attributes.RemoteWrites && r.attributes.ImmediateSize >= 4 }

// NeedsRegistration says that memory of the program is registered for each use, unless
// it is part of an Exposure.
func (r *Reactor) NeedsRegistration() bool { return r.attributes.NeedsRegistration }

// RemoteWrite is what Progress.Write writes, and where to.
type RemoteWrite struct {
	// Src is not empty, and at most Conn.MaxRead bytes long. Local is the exposure that
	// it is part of, or nil: then it is registered for the write, if the device needs that.
	Src   []byte
	Local *Exposure
	To    fabric.Remote
	// Tell has the function of Reactor.HandleWrites called at the peer with Immediate,
	// once Src is there; it is for devices that CanTell. Without it, the write ends only when Src is
	// there.
	Tell      bool
	Immediate uint32
}

// Write writes to the peer's memory. Writes may arrive in any order. Src is the reactor's
// until s.Sent is called, as with Read; an error of the device is a *ConnError of the
// kind with which a message would have ended the connection. A write that tells ends without
// one if the peer has meanwhile closed in order, which may be before the device has heard
// that the write was there.
func (p Progress) Write(c *Conn, w *RemoteWrite, s Sender) error {
	if err := c.reachable("write"); err != nil {
		return err
	}
	if !p.reactor.attributes.RemoteWrites || w.Tell && !p.reactor.CanTell() {
		return fabric.ErrNotSupported
	}
	op := p.reactor.newOperation(c, remoteAccess)
	op.kind, op.remote, op.accessor = fabric.OpWrite, w.To, s
	op.immediate = w.Immediate
	op.flags = fabric.DeliveryComplete
	if w.Tell {
		op.flags = fabric.Immediate
	}
	return p.reactor.access(op, w.Src, w.Local)
}

// HandleWrites has f called, in the progress role, with the immediate of each write of
// a peer, whoever that is. f must not call anything of this package but methods of its
// Progress. Without it they are dropped and counted.
func (r *Reactor) HandleWrites(f func(p Progress, immediate uint32)) {
	r.do(func() { r.onWrite = f })
}

// peerWrote takes in the immediate of a write by a peer.
func (r *Reactor) peerWrote(done *fabric.Completion) {
	if r.onWrite == nil || !done.HasImmediate || done.Err != nil {
		r.stats.Dropped++
		return
	}
	r.onWrite(Progress{r}, uint32(done.Immediate))
}
