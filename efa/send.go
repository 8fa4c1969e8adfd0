package efa

import (
	"context"
	"errors"
)

// Ways to send without waiting. What they have in common: nothing overtakes an
// earlier write of the connection, callbacks never run inside the call, and an
// error says that nothing was taken.

// ErrWouldBlock says that there is no room for a message now, and that nothing
// was taken: see [Conn.OnReady]. Where a limit of the Config is the reason, the
// error is a *PendingError.
var ErrWouldBlock = errors.New("efa: no room for the message now")

// CopyLimit is the longest message in bytes that TrySend takes.
func (c *Conn) CopyLimit() int { return min(c.reactor.copyLimit(), c.piece) }

// TrySend copies buf and sends it as one message, or says ErrWouldBlock if the
// reader is behind by the window or earlier writes wait for it. Either way buf is
// the caller's on return, and there is no callback. It is uct's short and bcopy: a
// message that the device can inject is injected, others go from a buffer of the
// reactor's. One longer than CopyLimit is a *MessageSizeError.
func (c *Conn) TrySend(buf []byte) error { return c.trySend(buf, nil) }

func (c *Conn) trySend(buf []byte, as *pending) error {
	if err := c.checkWrite(context.Background(), buf); err != nil {
		return err
	}
	if limit := c.CopyLimit(); len(buf) > limit {
		return &MessageSizeError{Size: int64(len(buf)), Limit: int64(limit), Writing: true}
	}
	k := newCall(c, buf)
	k.pending = as
	k.request.run = startTry
	return c.handOver(k)
}

func startTry(r *Reactor, q *request) {
	k, c := q.call, q.conn
	if err := r.writable(c); err != nil {
		k.finish(0, err)
		return
	}
	w := r.newWrite(c, k.buf)
	w.copied = true
	switch head := c.waiting.head; {
	case head != nil && (k.pending == nil || head.pending != k.pending), !r.room(w):
		r.freeWrite(w)
		k.finish(0, ErrWouldBlock)
	default:
		if k.pending != nil {
			k.pending.sent = true
		}
		r.begin(w)
		k.finish(0, nil)
	}
}

// Send begins to send buf as one message. There are three outcomes, those of
// ucp_tag_send:
//
//	nil, nil      it is done: buf is the caller's again
//	nil, err      it failed, and nothing was taken
//	request, nil  it is in progress: buf belongs to the connection until
//	              request.Wait returns
//
// A message up to the eager limit is done at once as long as the reader is not
// behind. ErrWouldBlock says that Config.MaxPending writes wait already.
func (c *Conn) Send(buf []byte) (*Request, error) {
	if err := c.checkWrite(context.Background(), buf); err != nil {
		return nil, err
	}
	k, taking := newCall(c, buf), newCall(c, buf)
	taking.sending = k
	taking.request.run = startSend
	n, err := c.wait(context.Background(), taking)
	if err != nil || n > 0 {
		_, failed := k.result()
		return nil, errors.Join(err, failed)
	}
	return (*Request)(k), nil
}

// startSend takes a write for which a Request may be handed out; the result 1
// says that it is done already.
func startSend(r *Reactor, q *request) {
	taking, c := q.call, q.conn
	k := taking.sending
	if err := r.takes(c, len(k.buf)); err != nil {
		taking.finish(0, err)
		return
	}
	w := r.newWrite(c, k.buf)
	w.call, k.write = k, w
	r.owe(w)
	r.enqueue(w)
	if k.done.Load() {
		taking.finish(1, nil)
	} else {
		taking.finish(0, nil)
	}
}

// Request is a message that is being sent. It must be waited for, once.
type Request call

// Done says whether Wait would return at once.
func (q *Request) Done() bool { return q.done.Load() }

// Wait waits until the message is out of the caller's hands, and returns what
// WriteMessage would. The request must not be used afterwards.
func (q *Request) Wait(ctx context.Context) error {
	k := (*call)(q)
	k.conn.reactor.await(ctx, k, false)
	_, err := k.result()
	return err
}

// SendZeroCopy sends buf as one message and returns without waiting. buf belongs
// to the connection until done is complete, of which this is one fragment. A
// message up to the eager limit is copied all the same.
func (c *Conn) SendZeroCopy(buf []byte, done *Completion) error {
	if err := c.checkWrite(context.Background(), buf); err != nil {
		return err
	}
	if err := done.reserve(); err != nil {
		return err
	}
	k := newCall(c, buf)
	k.completion = done
	k.request.run = startAsync
	err := c.handOver(k)
	if err != nil {
		done.unreserve()
	}
	return err
}

// WriteMessageAsync sends buf as one message and returns without waiting. buf
// belongs to the connection until done is called, exactly once, with nil or
// with what ended the connection. The calls of a connection come in the order of
// writing, from a goroutine of the reactor's, one at a time for all connections
// of the reactor; they may write and close, and should not block for long.
//
// If an error is returned, nothing was taken and done is not called: a message
// that is too long is a *MessageSizeError, and ErrWouldBlock says that
// Config.MaxPending writes wait for the reader already.
func (c *Conn) WriteMessageAsync(buf []byte, done func(error)) error {
	if err := c.checkWrite(context.Background(), buf); err != nil {
		return err
	}
	k := newCall(c, buf)
	k.callback = done
	k.request.run = startAsync
	return c.handOver(k)
}

func startAsync(r *Reactor, q *request) {
	k, c := q.call, q.conn
	err := r.takes(c, len(k.buf))
	if err == nil {
		w := r.newWrite(c, k.buf)
		w.callback, w.completion = k.callback, k.completion
		r.owe(w)
		r.enqueue(w)
	}
	k.finish(0, err)
}

// handOver waits until a call is taken by the leader, which needs nothing from the
// peer.
func (c *Conn) handOver(k *call) error {
	_, err := c.wait(context.Background(), k)
	return err
}

// takes says why a write without a goroutine of its own is not taken, if so.
func (r *Reactor) takes(c *Conn, n int) error {
	if err := r.writable(c); err != nil {
		return err
	}
	w := &c.waiting
	if w.length > 0 && (w.length >= r.config.MaxPending || w.bytes+int64(n) > r.config.MaxPendingBytes) {
		return &PendingError{Messages: w.length, Bytes: w.bytes, MessageLimit: r.config.MaxPending, ByteLimit: r.config.MaxPendingBytes}
	}
	return nil
}
