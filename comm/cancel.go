package comm

import "github.com/weft-go/weft/efa"

// cancel ends an operation that nothing has come of yet: a receive without a message,
// a probe that looks still, a send of which nothing has gone out.
func (op *operation) cancel(p efa.Progress, why error) {
	e := op.engine
	if e.provider != nil {
		// A probe that ends may be what the receives waited for.
		defer e.provider.steer(p)
	}
	switch {
	case op.done.Load():
	case op.list == &e.posted || op.list == &e.probes:
		op.endWait(p, why)
	case e.provider != nil:
		e.provider.cancel(p, op, why)
	case op.matched || op.peer == nil || op.peer.conn == nil:
		// Whoever was found for a send waits for all of it.
	case p.Withdraw(op.peer.conn, op) || p.Withdraw(op.peer.conn, (*announcement)(op)):
		e.sends.give(op)
		op.endExposure()
		op.complete(p, why)
	}
}
