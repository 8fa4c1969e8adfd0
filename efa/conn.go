package efa

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/tagged"
)

// Conn carries messages between two programs, in order, each whole. Its methods
// may be called from any goroutine; calls of the same kind at the same time are
// served in some order, each with a whole message.
type Conn struct {
	reactor *Reactor
	id      uint32 // on messages to this side
	closing atomic.Bool
	control *control

	closeOnce sync.Once
	remoteID  uint32 // on messages to the peer; belongs to the role, as all below that
	closeErr  error
	ended     chan struct{} // closed when the connection is over on both sides
	stream    Stream

	// All below belongs to whoever holds the reactor's progress role.
	peer       *peer
	beside     *besides // nil without
	maxMessage int64    // that the peer accepts
	eagerLimit int      // of both directions
	piece      int      // the longest message that both devices carry, or rails take
	rails      []connRail
	offered    []*rail // to the peer, of which rails are some
	peerWindow uint64  // in bytes

	plain      *plainConn // of an attached connection only
	operations *operation // in the device, or waiting to be posted
	queue      tagged.Queue[*operation]
	halves     tagged.Queue[*operation] // in Reactor.halves
	// gathering is the last operation in the queue, if short messages may still
	// join it; gathers says that both sides agreed to that.
	gathering *operation
	gathers   bool
	// writingEnded: CloseWrite was called, and writtenTold: the peer knows.
	writingEnded, writtenTold bool

	// Writing.
	nextWrite uint32
	writes    tagged.WriteDeque[*write]
	credit    *tagged.SendCredit
	waiting   writeList // for credit
	sent      uint64    // messages begun
	// parked is the payload of a message that is longer than the peer's window,
	// until the peer says that it can come; parkedAt is how many messages were
	// before it. There is one at most: it takes more than half of the window.
	parked   *operation
	parkedAt uint64
	credited uint64 // of these, known to have been taken by the reader
	flushes  flushes
	// writeFailed is why the first write that failed did.
	writeFailed error
	copied      int // bytes of payloads that the device has copies of

	// Reading.
	reads    *tagged.ReadDeque[inbound]
	granting *tagged.ReceiveCredit
	readers  []*call
	taken    int // bytes of the front that a stream has read
	// receiving counts the payloads with a receive, and unposted says that some
	// have none for now.
	receiving int32
	features  uint32 // that both sides offered
	unposted  bool
	// attended says that somebody reads whole messages, and did so when one was there
	// the last time; putOff that it is in Reactor.putOff, and overdue that nobody has
	// read since that list was last looked at.
	attended, putOff, overdue bool
	// held says that the handler did not take the message at the front, and told that
	// it was told of the end.
	held, told bool
	// peerClosed: nothing is accepted there any more, and confirmed: the peer has said that it
	// has all, and ends its side then.
	peerClosed, confirmed bool
	// payloadsCome counts the pieces of payloads that came, and payloadsBefore is
	// what it was when others began to wait for room.
	payloadsCome, payloadsBefore uint64
	arrived                      uint64 // messages announced by their length
	received                     uint64 // messages that are here whole
	consumed                     uint64 // messages that readers have had
	flushing                     flushing
	handler                      Handler // takes the messages, if there is one

	// The end. failure is why it came, if it was not the orderly one.
	failure       error
	undecided     []undecided // what may have failed or not
	remoteCount   uint64      // how many messages the peer writes, once
	finished      bool        // it has said so
	locallyClosed bool
	draining      bool // nothing had failed when shut began the orderly end
	acknowledged  bool // the peer has all of this side's messages, as is known
	answered      bool // this side has said that it has all of the peer's
	hungUp        bool // the control connection has ended in order
	over          bool // the control connection is done with
	released      bool // the device holds nothing of it any more

	stats connStats
}

// newConn makes a connection; the handshake fills in what the peer says.
func (r *Reactor) newConn() *Conn {
	c := &Conn{
		reactor:  r,
		ended:    make(chan struct{}),
		reads:    tagged.NewReadDeque[inbound](0, r.config.WindowMessages),
		granting: tagged.NewReceiveCredit(uint64(r.config.WindowMessages), uint64(r.config.WindowBytes)),
	}
	c.stream.conn = c
	return c
}

// Provider is the name of the provider that carries the messages.
func (c *Conn) Provider() string { return c.reactor.Provider() }

// LocalAddr is the address of the control connection on this side.
func (c *Conn) LocalAddr() net.Addr { return c.control.tcp.LocalAddr() }

// RemoteAddr is the address of the control connection on the peer's side.
func (c *Conn) RemoteAddr() net.Addr { return c.control.tcp.RemoteAddr() }

// MaxMessage is the longest message in bytes that the peer accepts.
func (c *Conn) MaxMessage() int64 { return c.maxMessage }

// Close ends the connection in order. Messages that were begun reach the peer;
// writes that still wait for the reader's credit, and reads, end with
// net.ErrClosed. It returns when the peer has everything, or with an error that
// is os.ErrDeadlineExceeded after Config.DrainTimeout, or with what ended the
// connection before the peer had confirmed everything that was written.
// Further calls return the same.
func (c *Conn) Close() error { return c.close(c.reactor.config.DrainTimeout) }

// CloseNow ends the connection at once: whatever was not delivered is lost, and
// the peer sees ErrPeerLost.
func (c *Conn) CloseNow() error {
	// A Close under way does not wait any longer either.
	c.closing.Store(true)
	c.reactor.do(func() { c.reactor.fail(c, net.ErrClosed, nil) })
	return c.close(0)
}

func (c *Conn) close(drain time.Duration) error {
	c.closing.Store(true)
	c.closeOnce.Do(func() { c.closeErr = c.shut(drain) })
	return c.closeErr
}

func (c *Conn) shut(drain time.Duration) error {
	r := c.reactor
	var result error
	if drain > 0 {
		r.do(func() { r.shut(c) })
		timer := time.NewTimer(drain)
		defer timer.Stop()
		select {
		case <-c.ended:
		case <-timer.C:
		}
	}
	r.do(func() {
		unconfirmed := c.sent > c.credited && !c.acknowledged
		switch {
		case c.failure == nil && !c.over:
			if drain > 0 && unconfirmed {
				result = &ConnError{Op: "close", Peer: c.RemoteAddr(), Kind: os.ErrDeadlineExceeded, Cause: c.undelivered()}
			}
			r.fail(c, net.ErrClosed, nil)
		case c.failure != nil && unconfirmed && drain > 0 && (c.draining || !errors.Is(c.failure, net.ErrClosed)):
			result = c.error("close", c.failure)
		}
		c.countError(result)
		c.locallyClosed = true
		r.discard(c)
	})
	return errors.Join(result, r.drop())
}

// undelivered says what a Close that came to its deadline was waiting for.
func (c *Conn) undelivered() error {
	if c.plain != nil {
		return errors.New("the device is not done with everything that was written")
	}
	return errors.New("the peer has not confirmed that it received everything")
}

// error makes what ended the connection into the error of an operation.
func (c *Conn) error(op string, why error) error {
	var e *ConnError
	if errors.As(why, &e) {
		return &ConnError{Op: op, Peer: e.Peer, Kind: e.Kind, Cause: e.Cause}
	}
	return &ConnError{Op: op, Peer: c.RemoteAddr(), Kind: why}
}

// shut begins the orderly end: nothing new goes out, and the peer is told how
// many messages it can count on.
func (r *Reactor) shut(c *Conn) {
	if c.locallyClosed {
		return
	}
	c.locallyClosed = true
	if c.failure != nil {
		return
	}
	c.draining = true
	r.failWaiting(c, net.ErrClosed)
	// The answer has said it already, and the peer may be gone since: what reaches its socket
	// then has the system forget all that it would have sent again.
	if !c.answered {
		c.control.send(frameFinish, c.sent)
	}
	r.pump(c)
	r.settleEnd(c)
}

// settleEnd looks whether the two sides have all that they sent each other, and
// does the next step of the end.
func (r *Reactor) settleEnd(c *Conn) {
	if c.failure != nil || c.over {
		return
	}
	if c.plain != nil {
		r.settlePlain(c)
		return
	}
	complete := c.finished && c.received >= c.remoteCount
	// A peer that still reads is not answered yet: the answer says that this
	// side writes no more.
	if complete && c.peerClosed && !c.answered {
		c.answered = true
		c.control.send(frameReceived, c.sent)
	}
	// The peer may have a message before the device reports it as sent.
	if (c.locallyClosed || c.hungUp) && c.acknowledged && complete && c.writes.Len() == 0 {
		r.end(c)
	}
}

// end is the end of the control connection, in order or after a failure.
func (r *Reactor) end(c *Conn) {
	if c.over {
		return
	}
	c.over = true
	r.countEnd(c)
	r.watcher.remove(c)
	c.control.close()
	close(c.ended)
	switch {
	case c.failure != nil:
		r.endFlushes(c, c.failure)
	case c.acknowledged:
		c.flushes.confirmed = c.sent
		r.endFlushes(c, nil)
	default:
		r.endFlushes(c, &ConnError{Op: "flush", Peer: c.RemoteAddr(), Kind: ErrPeerClosed, Cause: errUnconfirmed})
	}
	if c.plain != nil {
		r.noteFull(c)
	}
	r.releaseConn(c)
	r.pump(c)
}

// finish takes in that the peer has closed, after sending count messages.
func (r *Reactor) finish(c *Conn, count uint64) {
	if c.peerClosed || c.failure != nil || !r.lastMessage(c, count) {
		return
	}
	c.peerClosed = true
	r.failWaiting(c, ErrPeerClosed)
	r.settleEnd(c)
	r.pump(c)
}

// confirm takes in that the peer has everything, and sent count messages
// itself. It sends no more.
func (r *Reactor) confirm(c *Conn, count uint64) {
	if c.failure != nil {
		return
	}
	if !r.lastMessage(c, count) {
		return
	}
	c.acknowledged, c.confirmed, c.peerClosed = true, true, true
	r.decide(c)
	r.settleEnd(c)
}

// hangUp takes in that the control connection has ended.
func (r *Reactor) hangUp(c *Conn, cause error) {
	r.takeAllBeside(c)
	switch {
	case c.over || c.failure != nil:
	case c.finished && c.answered && (c.acknowledged || c.sent == c.credited):
		// Both sides have said goodbye, and have everything.
		c.hungUp, c.acknowledged = true, true
		r.decide(c)
		r.settleEnd(c)
	default:
		if errors.Is(cause, io.EOF) {
			cause = errors.New("its control connection ended")
		}
		r.fail(c, ErrPeerLost, cause)
	}
}

// fail ends a connection for a reason. Operations that the device holds are
// cancelled; calls that wait for them get a moment until it lets go, and then
// an InFlightError.
func (r *Reactor) fail(c *Conn, kind, cause error) {
	if c.failure != nil || c.over {
		return
	}
	c.failure = &ConnError{Op: "connection", Peer: c.RemoteAddr(), Kind: kind, Cause: cause}
	c.peerClosed = true
	r.arbiter.Drop(&c.queue, func(op *operation) { r.cancelled = append(r.cancelled, op) })
	for i := range c.rails {
		c.rails[i].sends.Drop(&c.rails[i].queue, func(op *operation) { r.cancelled = append(r.cancelled, op) })
	}
	for _, op := range r.cancelled {
		payload := op.payload
		r.ended(op, c.failure)
		if payload != nil {
			r.ended(payload, c.failure)
		}
	}
	r.cancelled = r.cancelled[:0]
	if op := c.parked; op != nil {
		c.parked = nil
		r.ended(op, c.failure)
	}
	r.decide(c)
	for op := c.operations; op != nil; op = op.next {
		if op.posted {
			r.cancel(op)
		}
	}
	r.failWaiting(c, c.failure)
	r.end(c)
	if !c.released {
		time.AfterFunc(letGo, func() {
			r.submit(func() { r.giveUp(c) })
		})
	}
}

// letGo is how long the device has to let go of what was cancelled before the
// calls that wait for it give up.
const letGo = time.Second

// giveUp ends the calls that wait for what the device does not let go of.
func (r *Reactor) giveUp(c *Conn) {
	if c.released {
		return
	}
	c.writes.Abandon(c.failure)
	r.releaseWrites(c)
	// A stream waits until it has its buffer back.
	r.giveUpAccesses(c)
	in, ok := c.reads.Get(c.reads.Next())
	if ok && in.reader != nil && !in.reader.stream {
		in.abandon(c.error("read", c.failure))
	}
	if ok && in.handled && in.receiving() && in.owner == nil {
		in.owner = &lender{released: make(chan struct{})}
		r.handBack(c, in, &InFlightError{Err: c.error("read", c.failure), Released: in.owner.released})
	}
	r.pump(c)
	r.giveUpPlace(c)
}

// releaseConn forgets a connection of which the device holds nothing any more.
func (r *Reactor) releaseConn(c *Conn) {
	if c.released || !c.over || c.operations != nil {
		return
	}
	c.released = true
	r.retire(c)
	if c.plain != nil {
		r.detach(c)
	} else {
		r.table.remove(c)
	}
	if c.peer != nil {
		c.peer.lost = c.peer.lost || c.failure != nil
		r.remove(c.peer)
	}
	r.leaveRails(c)
	r.leaveBeside(c)
	r.tellEmptied()
}

// discard drops what no reader will take any more.
func (r *Reactor) discard(c *Conn) {
	r.pump(c)
	if c.over && c.operations == nil {
		c.reads.Drop(func(_ uint32, in inbound) { r.shelf.give(in.data) })
	}
}

// ReadMessage waits for the next message and copies it into buf, or has it
// received there directly; it returns the length. A message that is longer than
// buf stays for the next read, and the error is a *MessageSizeError. io.EOF
// says that the peer has closed and everything was read; messages that had
// arrived are read before any error is returned.
//
// If ctx ends first, its error is returned, and the message stays for the next
// read. If then the device is still writing to buf, which it stops soon unless
// the peer hangs in the middle, the error is an *InFlightError.
func (c *Conn) ReadMessage(ctx context.Context, buf []byte) (int, error) {
	return c.read(ctx, buf, false)
}

// MessageSize waits for the next message and returns its length without taking
// it. Errors are those of ReadMessage.
func (c *Conn) MessageSize(ctx context.Context) (int, error) {
	return c.read(ctx, nil, true)
}

func (c *Conn) read(ctx context.Context, buf []byte, size bool) (int, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	k := newCall(c, buf)
	k.size = size
	k.request.run = startRead
	return c.wait(ctx, k)
}

// WriteMessage sends buf as one message, and returns when buf may be used
// again: at once for a short message, which is copied, and otherwise when the
// device is done with it. That is not yet to say that the peer has read it;
// Close says that. It waits while the reader is behind by the window.
//
// A message longer than the peer accepts is a *MessageSizeError, and nothing is
// sent. If ctx ends before the message is begun, nothing is sent and its error
// is returned; if it ends later, the message is sent all the same, and the
// error is an *InFlightError, unless the device is done just then.
func (c *Conn) WriteMessage(ctx context.Context, buf []byte) error {
	if err := c.checkWrite(ctx, buf); err != nil {
		return err
	}
	k := newCall(c, buf)
	k.request.run = startWrite
	_, err := c.wait(ctx, k)
	return err
}

// checkWrite finds what need not bother the reactor.
func (c *Conn) checkWrite(ctx context.Context, buf []byte) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if int64(len(buf)) > c.maxMessage {
		return &MessageSizeError{Size: int64(len(buf)), Limit: c.maxMessage, Writing: true}
	}
	return nil
}

// wait has a call done and returns its result.
func (c *Conn) wait(ctx context.Context, k *call) (int, error) {
	c.reactor.push(&k.request)
	c.reactor.await(ctx, k, false)
	return k.result()
}

func (k *call) result() (int, error) {
	n, err := k.n, k.err
	k.free()
	return n, err
}
