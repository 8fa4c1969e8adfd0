package comm

import (
	"context"
	"errors"
	"slices"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// Extension is what a package on top of communicators, such as package collective, has
// in each of them: it sends notices to the other ranks, has its memory written by them,
// and hears of both. Its methods are called in the progress role, one at a time for all
// communicators of a world, but for Drain and Release. They must not block, nor call
// anything of this package but what takes an efa.Progress.
type Extension interface {
	// Notice is called with each notice of a rank, in the order in which that has sent
	// them. An error ends the connection to that rank, with ErrProtocol.
	Notice(p efa.Progress, source int, n Notice) error
	// Left is called with a rank that has closed the communicator and had no extension
	// there. An error is one as of Notice.
	Left(p efa.Progress, rank int) error
	// Written is called with the word of each write by a rank, or by anybody who knows
	// what to write to, once the memory is written.
	Written(p efa.Progress, word uint32)
	// Lost is called once for each rank that is lost.
	Lost(p efa.Progress, rank int, why error)
	// Drain is called when the world is about to be closed by this side. It waits until the
	// other ranks have what was written to their memory, or ctx ends.
	Drain(ctx context.Context) error
	// Closed is called once, when the communicator is closed by this side. The other ranks
	// may not have closed it: what comes of them is told as before.
	Closed(p efa.Progress)
	// Release is called once, after the device is closed, unless EndExtension was before:
	// memory is this side's alone.
	Release() error
}

// Notice is something short that an extension of one rank tells that of another.
type Notice struct {
	Tag, ID, Length uint64
	Remote          fabric.Remote
}

// WordBits is how many bits of the immediate of a write a program may use as its word.
const WordBits = 24

// mostWindows is how many extensions of a world hear of writes.
const mostWindows = 1 << (32 - WordBits)

// extended is the extension of a communicator.
type extended struct {
	Extension
	comm   *Comm
	closed bool
}

// earlyNotice is one for an extension that is not there yet.
type earlyNotice struct {
	source int
	notice Notice
}

// Extend returns the extension of the communicator, which open makes for the first
// call, in the progress role: its window is what other ranks are to name in words for
// it, or -1 if there are too many. Notices that came before it follow at once.
func (c *Comm) Extend(open func(p efa.Progress, window int) Extension) (Extension, error) {
	if err := c.checkUse(); err != nil {
		return nil, err
	}
	if x := c.extension.Load(); x != nil {
		return x.Extension, nil
	}
	e := c.engine
	e.do(func(p efa.Progress) {
		if c.extension.Load() != nil || e.closed || c.closed.Load() {
			return
		}
		window := -1
		if e.reactor.CanTell() {
			window = e.freeWindow()
		}
		x := &extended{Extension: open(p, window), comm: c}
		if window >= 0 {
			e.windows[window] = x
		}
		if e.extensions == nil {
			e.extensions = make(map[uint32]*extended)
		}
		e.extensions[c.context] = x
		for _, rank := range e.lost {
			x.lost(p, e.peers[rank])
		}
		for _, rank := range e.absent[c.context] {
			x.left(p, e.peers[rank])
		}
		delete(e.absent, c.context)
		early := e.early[c.context]
		delete(e.early, c.context)
		for _, n := range early {
			e.arrivals.used -= overhead
			x.notice(p, e.peers[n.source], n.notice)
		}
		e.letGo(p)
		c.extension.Store(x)
	})
	if x := c.extension.Load(); x != nil {
		return x.Extension, nil
	}
	return nil, errClosed
}

// freeWindow is a window that no extension has, or -1.
func (e *engine) freeWindow() int {
	window := slices.Index(e.windows, nil)
	if window < 0 && len(e.windows) < mostWindows {
		window = len(e.windows)
		e.windows = append(e.windows, nil)
	}
	return window
}

// EndExtension ends the extension of a communicator that is closed: none of its methods is
// called any more, and another one may have its window. Nothing may be on its way to it, nor
// may it hold anything still. Those that do not call it, in the progress role, end with the
// world.
func (c *Comm) EndExtension(efa.Progress) {
	e, x := c.engine, c.extension.Load()
	delete(e.extensions, c.context)
	if window := slices.Index(e.windows, x); window >= 0 {
		e.windows[window] = nil
	}
}

// Extended is the extension of the communicator, or nil before Extend.
func (c *Comm) Extended() Extension {
	if x := c.extension.Load(); x != nil {
		return x.Extension
	}
	return nil
}

// Notify sends a notice to another rank, behind all messages to it.
func (c *Comm) Notify(p efa.Progress, rank int, n Notice) error {
	to := c.peer(rank)
	if to.failure != nil {
		return &RankError{Rank: rank, Cause: to.failure}
	}
	h := header{kind: kindNotice, context: c.contextOf(rank), tag: n.Tag, id: n.ID, length: n.Length, remote: n.Remote}
	var memory [openHeader]byte
	if _, err := p.Send(to.conn, h.put(&memory), nil, nil); err != nil {
		return c.lostError(to, err)
	}
	return nil
}

// Write writes to memory of another rank, as efa.Progress.Write. If w says Tell, its
// immediate is a word, and window that of the rank's extension.
func (c *Comm) Write(p efa.Progress, rank, window int, w *efa.RemoteWrite, s efa.Sender) error {
	to := c.peer(rank)
	if to.failure != nil {
		return &RankError{Rank: rank, Cause: to.failure}
	}
	if w.Tell {
		w.Immediate |= uint32(window) << WordBits
	}
	if err := p.Write(to.conn, w, s); err != nil {
		return c.lostError(to, err)
	}
	return nil
}

// MaxWrite is the most bytes that Write writes to a rank at once.
func (c *Comm) MaxWrite(rank int) int { return c.peer(rank).conn.MaxRead() }

// Reactor is what carries the messages of the world's communicators, for extensions to
// wait with (efa.Reactor.Run).
func (c *Comm) Reactor() *efa.Reactor { return c.engine.reactor }

// noticed takes in a notice.
func (from *peer) noticed(p efa.Progress, h header) bool {
	e := from.engine
	if e.closed {
		return true
	}
	n := Notice{h.tag, h.id, h.length, h.remote}
	if x := e.extensions[h.context]; x != nil {
		x.notice(p, from, n)
		return true
	}
	if e.arrivals.full {
		from.held = true
		return false
	}
	if !e.isOpen(h.context) {
		return true
	}
	if e.early == nil {
		e.early = make(map[uint32][]earlyNotice)
	}
	e.early[h.context] = append(e.early[h.context], earlyNotice{from.rank, n})
	e.arrivals.used += overhead
	e.arrivals.full = e.arrivals.used >= e.arrivals.limit
	return true
}

func (x *extended) notice(p efa.Progress, from *peer, n Notice) {
	x.hear(p, from, func(rank int) error { return x.Notice(p, rank, n) })
}

// tellGone tells the other ranks that this one has closed a communicator in which it has no
// extension: theirs would wait for it.
func (c *Comm) tellGone(p efa.Progress) {
	if c.engine.closed {
		return
	}
	for rank := range c.group {
		to := c.peer(rank)
		if rank == c.rank || to.failure != nil {
			continue
		}
		h := header{kind: kindGone, context: c.contextOf(rank)}
		var memory [openHeader]byte
		// If it cannot be sent, the connection has ended, and they hear of that.
		_, _ = p.Send(to.conn, h.put(&memory), nil, nil)
	}
}

// gone takes in that the rank has closed a communicator. That is kept for an extension that
// is not there yet: at most once for each rank of each that is open here, so that it is not
// counted as messages are, which would wait for room that it never gives back.
func (from *peer) gone(p efa.Progress, context uint32) {
	e := from.engine
	if e.closed {
		return
	}
	if x := e.extensions[context]; x != nil {
		x.left(p, from)
		return
	}
	if _, open := e.unclosed[context]; !open || slices.Contains(e.absent[context], from.rank) {
		return
	}
	if e.absent == nil {
		e.absent = make(map[uint32][]int)
	}
	e.absent[context] = append(e.absent[context], from.rank)
}

func (x *extended) left(p efa.Progress, from *peer) {
	x.hear(p, from, func(rank int) error { return x.Left(p, rank) })
}

// hear tells the extension something of a rank.
func (x *extended) hear(p efa.Progress, from *peer, tell func(rank int) error) {
	err := errUnknown
	if rank := x.comm.rankOf(from.rank); rank >= 0 {
		err = tell(rank)
	}
	if err != nil {
		p.Fail(from.conn, err)
	}
}

func (x *extended) lost(p efa.Progress, from *peer) {
	if rank := x.comm.rankOf(from.rank); rank >= 0 {
		x.Lost(p, rank, from.failure)
	}
}

// close tells the extension that its communicator is closed.
func (x *extended) close(p efa.Progress) {
	if !x.closed {
		x.closed = true
		x.Closed(p)
	}
}

// drainExtensions waits until nothing of theirs is on its way.
func (e *engine) drainExtensions() error {
	var all []*extended
	e.do(func(efa.Progress) {
		for _, x := range e.extensions {
			if !x.closed {
				all = append(all, x)
			}
		}
	})
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.config.CloseTimeout)
	defer cancel()
	var err error
	for _, x := range all {
		err = errors.Join(err, x.Drain(ctx))
	}
	return err
}

// written takes in the immediate of a write.
func (e *engine) written(p efa.Progress, immediate uint32) {
	window, word := int(immediate>>WordBits), immediate&(1<<WordBits-1)
	if e.closed || window >= len(e.windows) || e.windows[window] == nil {
		return
	}
	e.windows[window].Written(p, word)
}
