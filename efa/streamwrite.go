package efa

// A Write of a stream is a write that goes out in pieces, each a message: what
// there is credit for at once, the rest when more comes. It waits in the
// connection's line of writes, so others cannot come in between. Its call ends
// when all has begun and the device holds nothing of its buffer any more, or
// when it gives up with what had begun by then; it is never InFlight.
//
//	buf  |--- sent: in the deque, or done ---|--- waits for credit ---|
//	          pieces, of which held are the
//	          device's, from buf itself

const (
	// longestCopy is the longest piece in bytes that is copied, so that Write
	// need not wait until the device is done with it.
	longestCopy = 64 << 10
	// leastPiece bounds a piece from below, however small the peer's window is.
	leastPiece = 4 << 10
)

// pieces is what a write of a stream has beyond a message.
type pieces struct {
	stream bool
	// aside: all of it is to be copied, because the caller may not wait.
	aside bool
	sent  int // bytes begun
	open  int // pieces in the deque
	// stopped is why nothing more is begun, if not because all was.
	stopped error
}

// startStreamWrite is the request of Stream.Write.
func startStreamWrite(r *Reactor, q *request) {
	k, c := q.call, q.conn
	if err := r.writable(c); err != nil || len(k.buf) == 0 {
		k.finish(0, err)
		return
	}
	w := r.newWrite(c, k.buf)
	w.pieces = pieces{stream: true, aside: k.aside}
	w.call, k.write = k, w
	r.enqueue(w)
}

// beginPieces begins what there is credit for, and says whether that is all.
func (r *Reactor) beginPieces(w *write) bool {
	c := w.conn
	for w.sent < len(w.buf) {
		rest := w.buf[w.sent:]
		copies := w.aside || len(rest) <= longestCopy
		piece := rest[:min(len(rest), c.longestPiece(copies))]
		// What is copied is bounded by this side, whatever the peer admits.
		full := copies && c.copied > 0 && c.copied+len(piece) > int(r.config.WindowBytes)
		if full || !c.hasRoom(int64(len(piece))) {
			return false
		}
		if c.plain == nil {
			c.credit.Take(int64(len(piece)))
		}
		w.sent += len(piece)
		w.open++
		if len(piece) <= c.eagerLimit {
			r.sendEager(w, piece)
		} else {
			r.sendPair(w, piece, copies)
		}
	}
	w.begun = true
	r.settlePieces(w)
	return true
}

// longestPiece is the longest message that a stream sends: half of the window,
// so that two of them are on their way at once.
func (c *Conn) longestPiece(copies bool) int {
	most := min(int64(min(max(c.peerWindow/2, leastPiece), 1<<40)), c.maxMessage, int64(c.piece))
	if copies {
		most = min(most, longestCopy)
	}
	return int(most)
}

// stopPieces keeps what has not begun from being sent.
func (r *Reactor) stopPieces(w *write, err error) {
	w.stopped = err
	r.settlePieces(w)
}

// settlePieces ends the call of a write if nothing more will begin and the
// device is done with its buffer, and the write if it is out of the deque too.
func (r *Reactor) settlePieces(w *write) {
	if w.held > 0 || (!w.begun && w.stopped == nil) {
		return
	}
	if w.call != nil {
		err := w.stopped
		if c := w.conn; err == nil && c.failure != nil {
			err = c.error("write", c.failure)
		}
		w.buf = nil
		r.answer(w, w.sent, err)
	}
	if w.open == 0 {
		r.freeWrite(w)
	}
}
