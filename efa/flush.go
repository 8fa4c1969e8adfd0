package efa

import (
	"context"
	"errors"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// FlushScope says what a flush waits for.
type FlushScope int

// The scopes of a flush.
const (
	// FlushLocal: the device is done with every message, so that their buffers are
	// free, and would have reported an error.
	FlushLocal FlushScope = iota
	// FlushRemote: every message is in the peer's memory, whether or not a reader
	// has asked for it yet. One that is longer than the whole window gets there
	// only when it is read.
	FlushRemote
)

// Flush waits until everything that was written on the connection before is
// complete, writes that wait for the reader included. Writes that come meanwhile
// may go on. The error is what ended the connection before that, or ctx's; a remote
// flush of an attached connection is fabric.ErrNotSupported.
func (c *Conn) Flush(ctx context.Context, scope FlushScope) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	k := newCall(c, nil)
	k.flush = &flush{scope: scope, call: k}
	k.request.run = startFlush
	_, err := c.wait(ctx, k)
	return err
}

// FlushAsync is Flush without waiting: done is told, of which this is one
// fragment.
func (c *Conn) FlushAsync(scope FlushScope, done *Completion) error {
	if err := done.reserve(); err != nil {
		return err
	}
	r := c.reactor
	r.do(func() { r.flush(c, &flush{scope: scope, completion: done}) })
	return nil
}

// Flush waits until everything that was written before on any connection of the
// reactor is complete, on attached ones locally; see [Conn.Flush]. The error is that of the first connection
// that ended before, or ctx's.
func (r *Reactor) Flush(ctx context.Context, scope FlushScope) error {
	result := make(chan error, 1)
	r.do(func() {
		if r.broken != nil {
			result <- r.broken
			return
		}
		done := NewCompletion(r.table.count+r.plain.count+1, func(err error) { result <- err })
		// A callback may be what waits for it.
		done.inRole = true
		for c := range r.connections() {
			_ = done.reserve()
			f := &flush{scope: scope, completion: done}
			if c.plain != nil {
				f.scope = FlushLocal
			}
			r.flush(c, f)
		}
		_ = done.reserve()
		done.complete(&r.callbacks, nil)
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// flush is somebody who waits for the end of all that was written before.
type flush struct {
	scope FlushScope
	// count is the number of messages that were begun before.
	count uint64
	// One of the two.
	call       *call
	completion *Completion
}

// flushes are the remote ones that wait for the peer's answer.
type flushes struct {
	waiting   []*flush
	confirmed uint64 // messages that the peer has
}

// flushing is the peer's wish to know of how many messages all are here.
type flushing struct {
	asked  uint64
	prefix uint64 // all messages up to this one are here, as far as was looked
}

func startFlush(r *Reactor, q *request) { r.flush(q.conn, q.call.flush) }

// flush puts itself in line with the writes.
func (r *Reactor) flush(c *Conn, f *flush) {
	if f.completion != nil {
		r.owed.add()
	}
	if err := r.flushable(c, f.scope); err != nil {
		r.endFlush(f, err)
		return
	}
	c.stats.Flushes++
	w := r.newWrite(c, nil)
	w.flush = f
	r.enqueue(w)
}

// flushable says why nothing can be waited for, if so. That the peer has closed
// is no reason: it still confirms.
func (r *Reactor) flushable(c *Conn, scope FlushScope) error {
	if c.plain != nil && scope == FlushRemote {
		return &ConnError{Op: "flush", Peer: c.RemoteAddr(), Kind: fabric.ErrNotSupported, Cause: errors.New("the peer of an attached connection does not confirm anything")}
	}
	if c.failure == nil && r.broken == nil && !c.locallyClosed && !c.closing.Load() {
		return nil
	}
	return r.writable(c)
}

// beginFlush is the flush's turn: everything before it is begun.
func (r *Reactor) beginFlush(w *write) {
	c := w.conn
	w.begun = true
	w.flush.count = c.sent
	// What comes next is not to become a part of what came before.
	c.gathering = nil
	c.writes.Push(w, 0)
	r.releaseWrites(c)
}

// flushedLocally is when all that came before has left the deque.
func (r *Reactor) flushedLocally(c *Conn, f *flush, err error) {
	if err == nil {
		err = c.writeFailed
	}
	if err == nil && c.failure != nil {
		err = c.failure
	}
	switch {
	case err != nil:
		r.endFlush(f, c.error("flush", err))
	case f.scope == FlushLocal || c.flushes.confirmed >= f.count || c.acknowledged:
		r.endFlush(f, nil)
	default:
		c.flushes.waiting = append(c.flushes.waiting, f)
		r.sendControl(c, tagged.Control{Type: tagged.ControlFlush, Messages: f.count})
	}
}

func (r *Reactor) endFlush(f *flush, err error) {
	if k := f.call; k != nil {
		f.call, k.flush = nil, nil
		k.finish(0, err)
	}
	if f.completion != nil {
		r.owed.take()
		f.completion.complete(&r.callbacks, err)
		f.completion = nil
	}
}

// flushAsked takes in that the peer wants to know when count messages are here.
func (r *Reactor) flushAsked(c *Conn, count uint64) {
	c.flushing.asked = max(c.flushing.asked, count)
	r.answerFlush(c)
}

// answerFlush tells the peer that what it asked about is here, once it is.
func (r *Reactor) answerFlush(c *Conn) {
	f := &c.flushing
	if f.prefix >= f.asked {
		return
	}
	f.prefix = max(f.prefix, c.consumed)
	for f.prefix < f.asked {
		in, ok := c.reads.Get(uint32(f.prefix))
		if !ok || !in.whole {
			return
		}
		f.prefix++
	}
	r.sendControl(c, tagged.Control{Type: tagged.ControlFlushed, Messages: f.prefix})
}

// flushConfirmed takes in that the peer has count messages.
func (r *Reactor) flushConfirmed(c *Conn, count uint64) error {
	if count > c.sent {
		return &tagged.CreditError{Problem: tagged.CreditFalseGrant, Messages: count, MessageLimit: c.sent}
	}
	c.flushes.confirmed = max(c.flushes.confirmed, count)
	r.endFlushes(c, nil)
	return nil
}

// endFlushes ends those that the peer has confirmed, or with an error all.
func (r *Reactor) endFlushes(c *Conn, err error) {
	kept := c.flushes.waiting[:0]
	for _, f := range c.flushes.waiting {
		switch {
		case f.count <= c.flushes.confirmed:
			r.endFlush(f, nil)
		case err != nil:
			r.endFlush(f, c.error("flush", err))
		default:
			kept = append(kept, f)
		}
	}
	clear(c.flushes.waiting[len(kept):])
	c.flushes.waiting = kept
}

var errUnconfirmed = errors.New("the peer did not confirm that it has everything")
