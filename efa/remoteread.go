package efa

import "github.com/weft-go/weft/fabric"

// CanRead says whether Read can be used: the device reads memory of peers, and they its.
// It does not change.
func (r *Reactor) CanRead() bool { return r.attributes.RemoteReads }

// Read reads as much of the peer's memory as there is room for in dst, behind what was
// sent on the connection before. dst is the reactor's until s.Sent is called, never in
// this call: with nil, or with why it could not be read, which does not end the
// connection. An *InFlightError says that the device still has dst, and other memory
// that s has reads under way into, until its Released is closed. With an error
// nothing was begun. One read is at most Conn.MaxRead bytes long.
func (p Progress) Read(c *Conn, dst []byte, from fabric.Remote, s Sender) error {
	if err := c.reachable("read"); err != nil {
		return err
	}
	if !p.reactor.attributes.RemoteReads {
		return fabric.ErrNotSupported
	}
	op := p.reactor.newOperation(c, remoteAccess)
	op.kind, op.remote, op.accessor = fabric.OpRead, from, s
	return p.reactor.access(op, dst, nil)
}

// MaxRead is the most bytes that Progress.Read reads, and Progress.Write writes, at once. It
// has nothing to do with ReadMessage, nor with AttachConfig.MaxRead.
func (c *Conn) MaxRead() int { return int(min(c.reactor.attributes.MaxMessage, 1<<30)) }
