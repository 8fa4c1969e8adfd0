package comm

import (
	"errors"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// A rendezvous by remote reads: the sender tells where its message is, the receiver
// reads it straight into its buffer, in pieces, and answers when it has what it wants.
// Only then is the buffer the sender's. Where that cannot be, the receiver asks for the
// message instead.

// readsRemotely says whether long messages are read from where they are.
func (e *engine) readsRemotely() bool { return !e.config.NoRemoteReads && e.reactor.CanRead() }

// expose lets the receiver read the message of a send, if it can be.
func (op *operation) expose(p efa.Progress, h *header) {
	if len(op.buf) == 0 || !op.engine.readsRemotely() {
		return
	}
	exposure, err := p.Expose(op.buf)
	if err != nil {
		// It is sent then, which needs no registration that peers use.
		op.engine.config.Logger.Debug("weft: a message cannot be exposed", "bytes", len(op.buf), "error", err)
		return
	}
	op.exposure = exposure
	h.kind, h.remote = kindOpen, exposure.Remote
}

func (op *operation) endExposure() {
	if op.exposure == nil {
		return
	}
	if err := op.exposure.Close(); err != nil {
		op.engine.config.Logger.Warn("weft: closing the registration of a message", "error", err)
	}
	op.exposure = nil
}

// read begins to read the message of a sender.
func (op *operation) read(p efa.Progress, h header) {
	op.opening, op.offset, op.failed = h, 0, nil
	if len(op.buf) == 0 {
		op.haveRead(p)
		return
	}
	op.engine.receives.take(op)
	op.inDevice = true
	op.expect(p)
	op.readOn(p)
}

// readOn begins the reads of the next pieces. It may end the operation.
func (op *operation) readOn(p efa.Progress) {
	c, conn := &op.engine.config, op.peer.conn
	most := min(c.ReadPiece, conn.MaxRead())
	for op.failed == nil && op.offset < len(op.buf) && op.reading < c.ReadWindow {
		piece := op.buf[op.offset:min(op.offset+most, len(op.buf))]
		from := fabric.Remote{Address: op.opening.remote.Address + uint64(op.offset), Key: op.opening.remote.Key}
		if err := p.Read(conn, piece, from, op); err != nil {
			op.failed = err
			break
		}
		op.reading++
		op.offset += len(piece)
	}
	if op.reading > 0 {
		return
	}
	op.engine.receives.give(op)
	op.inDevice = false
	switch {
	case op.peer.failure != nil:
		op.complete(p, op.rankError())
	case op.failed != nil:
		// Memory may be out of reach, by a rule of the system say: the sender sends.
		op.peer.unreadable = true
		op.engine.config.Logger.Info("weft: memory of a rank cannot be read, it sends instead", "rank", op.peer.rank, "error", op.failed)
		op.failed = nil
		op.clear(p, op.opening)
	default:
		op.haveRead(p)
	}
}

// pieceRead is the end of one read.
func (op *operation) pieceRead(p efa.Progress, err error) {
	op.reading--
	var in *efa.InFlightError
	if errors.As(err, &in) {
		// The connection is gone, and the device does not let go of the buffer.
		if op.reading == 0 {
			op.failReceive(p, err)
		}
		return
	}
	if err != nil && op.failed == nil {
		op.failed = err
	}
	op.readOn(p)
}

// haveRead ends a receive that has read all that it wants.
func (op *operation) haveRead(p efa.Progress) {
	op.peer.answer(p, op.opening.id)
	op.finishReceive(p)
}
