package efa

import "errors"

// ErrReady says that there is room already, so that nothing was registered.
var ErrReady = errors.New("efa: there is room already")

// Pending is what a callback of OnReady wants next.
type Pending int

// What a callback of OnReady can say.
const (
	// PendingDone: it has sent what it had, and is forgotten.
	PendingDone Pending = iota
	// PendingAgain: call again as long as there is room. If it has sent nothing
	// this time, that is PendingStop.
	PendingAgain
	// PendingStop: call again when there is more room than there was.
	PendingStop
)

// OnReady has f called when there is room for a message again, after TrySend said
// ErrWouldBlock. f gets a TrySend of its own, because until f says PendingDone
// nothing overtakes it: any other TrySend would block, and other writes wait
// behind it, callbacks registered later included. f is called from a goroutine of
// the reactor's, as all callbacks are, never inside this call. When the connection
// ends, f is called once more, and its send returns why.
//
// If there is room already, the error is ErrReady, and f is not called: nothing
// that happened between TrySend and OnReady is lost.
func (c *Conn) OnReady(f func(send func([]byte) error) Pending) error {
	p := &pending{conn: c, f: f}
	p.send = func(buf []byte) error { return c.trySend(buf, p) }
	p.run = func(error) {
		verdict := f(p.send)
		c.reactor.do(func() { c.reactor.pendingReturned(p, verdict) })
	}
	k := newCall(c, nil)
	k.pending = p
	k.request.run = startPending
	return c.handOver(k)
}

// pending is a callback that waits in line for room.
type pending struct {
	conn *Conn
	f    func(send func([]byte) error) Pending
	send func([]byte) error
	run  func(error)

	// All below belongs to the role. running: f has been called; sent and more:
	// since then it sent something, or more room came.
	running, sent, more bool
	// over: the connection has ended; told: f has been called since.
	over, told bool
}

func startPending(r *Reactor, q *request) {
	k, c := q.call, q.conn
	if err := r.writable(c); err != nil {
		k.finish(0, err)
		return
	}
	if c.waiting.length == 0 && c.hasRoom(1) {
		k.finish(0, ErrReady)
		return
	}
	w := r.newWrite(c, nil)
	w.pending = k.pending
	r.owe(w)
	c.waiting.push(w)
	k.finish(0, nil)
}

// offer calls the callback at the head of the line, if there is room.
func (r *Reactor) offer(w *write) {
	p := w.pending
	switch {
	case p.running:
		p.more = true
	case w.conn.hasRoom(1):
		p.running, p.sent, p.more = true, false, false
		r.pay(w)
		r.callbacks.add(p.run, nil)
	}
}

// pendingReturned takes in what a callback wants.
func (r *Reactor) pendingReturned(p *pending, verdict Pending) {
	p.running = false
	c := p.conn
	if !p.over {
		// It is at the head of the line, and waits again.
		r.owe(c.waiting.head)
	}
	switch {
	case p.over:
		if verdict != PendingDone && !p.told {
			p.told = true
			r.callbacks.add(p.run, nil)
		}
	case verdict == PendingDone:
		r.freeWrite(c.waiting.pop())
		r.beginWaiting(c)
	case p.more, verdict == PendingAgain && p.sent:
		r.beginWaiting(c)
	}
}

// failPending ends a callback's place in line, which has been left.
func (r *Reactor) failPending(w *write) {
	p := w.pending
	p.over = true
	if !p.running {
		p.running, p.told = true, true
		r.callbacks.add(p.run, nil)
	}
	r.freeWrite(w)
}
