package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/tagged"
)

// What a receive or a probe may give as source and tag.
const (
	AnySource = -1 // a message of any rank
	AnyTag    = -1 // a message with any tag
)

// MaxTag is the highest tag; the lowest is 0. Where an int has 32 bits, it is 1<<31 - 1.
const MaxTag = min(1<<32-1, math.MaxInt)

// Comm is a communicator: some ranks of a job that send each other messages which no
// other communicator sees. Its methods may be called from any goroutine, at the same
// time as well; messages of calls at the same time are sent and matched in some
// order. Those that are said to be collective are called by all of its ranks, in the
// same order, and by one goroutine at a time.
type Comm struct {
	engine *engine
	// context is that of messages to this rank, and contexts those of messages to each;
	// nil if all have worldContext. The next one is for those of the communicator's own.
	context  uint32
	contexts []uint32
	group    []int // the ranks of the world, by rank
	ranks    []int // the ranks in here by those of the world, -1 for none
	rank     int
	closed   atomic.Bool

	extension atomic.Pointer[extended]
}

// worldContext is that of the world, on all ranks. Contexts are given out in pairs.
const worldContext uint32 = 0

func newComm(e *engine, group []int, contexts []uint32, rank int) *Comm {
	c := &Comm{engine: e, context: worldContext, contexts: contexts, group: group, rank: rank, ranks: make([]int, len(e.peers))}
	if contexts != nil {
		c.context = contexts[rank]
	}
	for i := range c.ranks {
		c.ranks[i] = -1
	}
	for rank, world := range group {
		c.ranks[world] = rank
	}
	return c
}

// Status says what was received, or found.
type Status struct {
	Source int // the rank of the sender
	Tag    int
	Length int // of the message in bytes; what was received may be less
}

// Rank is this process' place in the communicator, Size the number of its ranks.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return len(c.group) }

// Provider is the name of the provider that carries the messages.
func (c *Comm) Provider() string { return c.engine.reactor.Provider() }

// Stats are the counts of the reactor, of all communicators together.
func (c *Comm) Stats() efa.Stats { return c.engine.reactor.Stats() }

// EagerLimit is the longest message in bytes to a rank that is sent at once, whether
// there is a receive for it or not.
func (c *Comm) EagerLimit(rank int) (int, error) {
	if err := c.checkRank("rank", rank); err != nil {
		return 0, err
	}
	if p := c.peer(rank); p.conn != nil {
		return p.eager - shortHeader, nil
	}
	return c.engine.config.Engine.EagerLimit, nil
}

// Close ends the use of a communicator. It is not collective: each rank closes when it is
// done. That of the world ends all others too: it waits until the other ranks have
// everything that was sent to them, for Config.CloseTimeout at most, and ends the calls and
// requests that are still under way with net.ErrClosed. Its errors are joined: a *RankError
// for each rank that has not got everything, and what the extensions and the device
// returned. A second Close returns the same.
//
// With any other, requests under way go on, and messages for which there is no receive
// by then are dropped. If the communicator has made no collective call, that sends one
// short message to each other rank of it, so that those which make one do not wait for this
// rank: a Dup or Split that is made and closed again costs as many messages on each rank as
// there are others.
func (c *Comm) Close() error {
	again := c.closed.Swap(true)
	if c.context == worldContext {
		return c.engine.close()
	}
	if !again {
		c.engine.do(c.leave)
	}
	return nil
}

// Send sends buf to a rank, and returns when buf may be used again. For a message of
// up to the EagerLimit that is at once, unless the receiver is far behind; for a
// longer one, when the receiver has it. buf is not changed.
//
// If ctx ends before the message was sent, nothing is, and the error is the cause of ctx
// (context.Cause); if it ends later, the error is
// an *efa.InFlightError. Other errors: *ArgumentError, *RankError, net.ErrClosed.
func (c *Comm) Send(ctx context.Context, buf []byte, dest, tag int) error {
	return c.sendAndWait(ctx, buf, dest, tag, false)
}

// Ssend is Send, but returns only when a receive has taken the message.
func (c *Comm) Ssend(ctx context.Context, buf []byte, dest, tag int) error {
	return c.sendAndWait(ctx, buf, dest, tag, true)
}

func (c *Comm) sendAndWait(ctx context.Context, buf []byte, dest, tag int, synchronous bool) error {
	op, err := c.newSend(buf, dest, tag, synchronous)
	if err != nil {
		return err
	}
	_, err = op.runToEnd(ctx)
	return err
}

// Isend begins a Send and returns: buf belongs to the request until it is done.
func (c *Comm) Isend(buf []byte, dest, tag int) (Request, error) {
	op, err := c.newSend(buf, dest, tag, false)
	return op.start(), err
}

// Issend begins an Ssend and returns: buf belongs to the request until it is done.
func (c *Comm) Issend(buf []byte, dest, tag int) (Request, error) {
	op, err := c.newSend(buf, dest, tag, true)
	return op.start(), err
}

// Recv receives the earliest message from source, or AnySource, with tag, or AnyTag,
// into buf. A longer one than buf is a *TruncationError, with the status of the
// message and the beginning of it in buf.
//
// If ctx ends before there is a message, the error is the cause of ctx (context.Cause) and
// nothing is lost; if the message is under way by then, the error is an *efa.InFlightError,
// and the message is lost. Other errors: *ArgumentError, *RankError (where AnySource is
// asked for, if any rank is lost), net.ErrClosed.
func (c *Comm) Recv(ctx context.Context, buf []byte, source, tag int) (Status, error) {
	op, err := c.newReceive(buf, source, tag)
	if err != nil {
		return Status{}, err
	}
	return op.runToEnd(ctx)
}

// Irecv begins a Recv and returns: buf belongs to the request until it is done.
func (c *Comm) Irecv(buf []byte, source, tag int) (Request, error) {
	op, err := c.newReceive(buf, source, tag)
	return op.start(), err
}

// Sendrecv sends one message and receives another at the same time, so that ranks may
// do it to each other in a circle. send and recv must not overlap.
//
// Errors are those of Send and of Recv, joined; one of the send ends the receive, if it has
// no message yet. Both may be an *efa.InFlightError, one for each buffer, where errors.As
// finds the first only: efa.Released waits for both.
func (c *Comm) Sendrecv(ctx context.Context, send []byte, dest, sendTag int, recv []byte, source, recvTag int) (Status, error) {
	in, err := c.Irecv(recv, source, recvTag)
	if err != nil {
		return Status{}, err
	}
	sendErr := c.Send(ctx, send, dest, sendTag)
	if sendErr != nil {
		in.Cancel()
	}
	status, err := in.finish(ctx)
	return status, errors.Join(sendErr, err)
}

func (c *Comm) newSend(buf []byte, dest, tag int, synchronous bool) (*operation, error) {
	if err := c.checkUse(); err != nil {
		return nil, err
	}
	if err := c.checkRank("dest", dest); err != nil {
		return nil, err
	}
	if tag < 0 || tag > MaxTag {
		return nil, &ArgumentError{"tag", tag, fmt.Sprintf("0 to %d", MaxTag)}
	}
	op := c.sendTo(dest, buf)
	op.tag, op.synchronous = uint64(tag), synchronous
	return op, nil
}

func (c *Comm) sendTo(dest int, buf []byte) *operation {
	op := c.engine.newOperation(c, workSend)
	op.context, op.buf, op.peer, op.tag, op.synchronous = c.contextOf(dest), buf, c.peer(dest), 0, false
	return op
}

// contextOf is that of messages to a rank.
func (c *Comm) contextOf(rank int) uint32 {
	if c.contexts == nil {
		return worldContext
	}
	return c.contexts[rank]
}

func (c *Comm) newReceive(buf []byte, source, tag int) (*operation, error) {
	pattern, err := c.pattern(source, tag)
	if err != nil {
		return nil, err
	}
	return c.receiveOn(pattern, buf), nil
}

func (c *Comm) receiveOn(pattern tagged.Pattern, buf []byte) *operation {
	op := c.engine.newOperation(c, workReceive)
	op.pattern, op.buf = pattern, buf
	return op
}

// pattern is what a receive or a probe looks for.
func (c *Comm) pattern(source, tag int) (tagged.Pattern, error) {
	p := tagged.Pattern{Context: c.context, Tag: uint64(tag)}
	if err := c.checkUse(); err != nil {
		return p, err
	}
	switch {
	case source == AnySource:
		p.Source = tagged.AnySource
	case source < 0 || source >= len(c.group):
		return p, &ArgumentError{"source", source, fmt.Sprintf("0 to %d or AnySource", len(c.group)-1)}
	default:
		p.Source = uint32(c.group[source])
	}
	switch {
	case tag == AnyTag:
		p.Tag, p.Ignore = 0, tagged.AnyTag
	case tag < 0 || tag > MaxTag:
		return p, &ArgumentError{"tag", tag, fmt.Sprintf("0 to %d or AnyTag", MaxTag)}
	}
	return p, nil
}

func (c *Comm) checkUse() error {
	if c.closed.Load() {
		return errClosed
	}
	return nil
}

func (c *Comm) checkRank(name string, rank int) error {
	if rank < 0 || rank >= len(c.group) {
		return &ArgumentError{name, rank, fmt.Sprintf("0 to %d", len(c.group)-1)}
	}
	return nil
}

func (c *Comm) peer(rank int) *peer { return c.engine.peers[c.group[rank]] }

// rankOf is the rank in here of one of the world.
func (c *Comm) rankOf(world int) int { return c.ranks[world] }

// waitsFor says whether the loss of a rank of the world ends what looks for that, and
// which rank it is in here.
func (c *Comm) waitsFor(p tagged.Pattern, world int) (rank int, waits bool) {
	rank = c.rankOf(world)
	return rank, rank >= 0 && (p.Source == tagged.AnySource || p.Source == uint32(world))
}

// lostOf is the error of what looks for a message of a rank that is lost, or of any
// where one is.
func (c *Comm) lostOf(p tagged.Pattern) error {
	for _, world := range c.engine.lost {
		if rank, waits := c.waitsFor(p, world); waits {
			return &RankError{Rank: rank, Cause: c.engine.peers[world].failure}
		}
	}
	return nil
}

// lostError is the error of an operation with a rank whose connection has ended.
func (c *Comm) lostError(p *peer, err error) error {
	if errors.Is(err, errClosed) {
		return err
	}
	return &RankError{Rank: c.rankOf(p.rank), Cause: err}
}
