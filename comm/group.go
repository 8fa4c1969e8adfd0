package comm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/tagged"
)

// Undefined is the color of a rank that is to be in none of the communicators that
// Split makes.
const Undefined = -1

// Dup makes a communicator of the same ranks whose messages are apart from those of
// this one: Split has more of it.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return c.Split(ctx, 0, c.rank) }

// Split makes a communicator of the ranks that give the same color, 0 or higher, in
// the order of their keys, and of their ranks here where these are equal. With
// Undefined the result is nil, and so is the error. The caller closes what is made; Close of
// the world does too.
//
// It is collective. An *ArgumentError, of a color, is this rank's alone: the others wait for
// it until their ctx ends. With a *ContextError, which says that a rank has been in too many,
// it fails on all ranks. After any other error no more communicators must be made of this
// one, on any rank, since what ranks have told each other may not belong together any more;
// nothing enforces that. Other errors: *RankError, net.ErrClosed, and the cause of ctx
// (context.Cause).
func (c *Comm) Split(ctx context.Context, color, key int) (made *Comm, err error) {
	if err := c.checkUse(); err != nil {
		return nil, err
	}
	if color < Undefined {
		return nil, &ArgumentError{"color", color, "0 or more, or Undefined"}
	}
	mine := wish{color: color, key: key}
	if color != Undefined {
		mine.context = c.engine.newContext()
		defer func() {
			if made == nil && mine.context != 0 {
				c.engine.do(func(p efa.Progress) { c.engine.endContext(p, mine.context) })
			}
		}()
	}
	var answer []byte
	if c.rank == 0 {
		answer, err = c.leadSplit(ctx, mine)
	} else {
		answer, err = c.followSplit(ctx, mine)
	}
	if err != nil {
		return nil, err
	}
	if len(answer) == 0 {
		return nil, &ContextError{Limit: c.engine.mostContexts()}
	}
	if color == Undefined {
		return nil, nil
	}
	return c.part(answer, mine.context)
}

// wish is what a rank wants of Split. Each rank chooses the context of messages to
// itself: so no number has to be free on all of them. 0 is none.
type wish struct {
	color, key, rank int
	context          uint32
}

const wishSize = 8 + 8 + 4

func (w *wish) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(w.color))
	b = binary.LittleEndian.AppendUint64(b, uint64(w.key))
	return binary.LittleEndian.AppendUint32(b, w.context)
}

func parseWish(b []byte, rank int) wish {
	return wish{
		color: int(binary.LittleEndian.Uint64(b)), key: int(binary.LittleEndian.Uint64(b[8:])), rank: rank,
		context: binary.LittleEndian.Uint32(b[16:]),
	}
}

// followSplit tells rank 0 what this rank wants, and returns its answer: the ranks of the
// world that belong together, each with its context.
func (c *Comm) followSplit(ctx context.Context, mine wish) ([]byte, error) {
	if _, err := c.sendWithin(0, mine.encode()).runToEnd(ctx); err != nil {
		return nil, err
	}
	answer := make([]byte, memberSize*len(c.group))
	status, err := c.receiveOn(c.within(0), answer).runToEnd(ctx)
	if err != nil {
		return nil, err
	}
	return answer[:status.Length], nil
}

// leadSplit decides who belongs together. Where a rank has no context the answers are
// empty, and everybody fails.
func (c *Comm) leadSplit(ctx context.Context, mine wish) ([]byte, error) {
	wishes := []wish{mine}
	for rank := 1; rank < len(c.group); rank++ {
		var buf [wishSize]byte
		status, err := c.receiveOn(c.within(rank), buf[:]).runToEnd(ctx)
		if err != nil {
			return nil, err
		}
		if status.Length != len(buf) {
			return nil, &RankError{Rank: rank, Cause: ErrProtocol}
		}
		wishes = append(wishes, parseWish(buf[:], rank))
	}
	fails := slices.ContainsFunc(wishes, func(w wish) bool { return w.color != Undefined && w.context == 0 })
	slices.SortStableFunc(wishes, func(a, b wish) int {
		return cmp.Or(cmp.Compare(a.color, b.color), cmp.Compare(a.key, b.key))
	})
	var own []byte
	var errs []error
	for len(wishes) > 0 {
		n := 0
		for n < len(wishes) && wishes[n].color == wishes[0].color {
			n++
		}
		var answer []byte
		if !fails {
			for _, w := range wishes[:n] {
				answer = binary.LittleEndian.AppendUint32(answer, uint32(c.group[w.rank]))
				answer = binary.LittleEndian.AppendUint32(answer, w.context)
			}
		}
		for _, w := range wishes[:n] {
			if w.rank == 0 {
				own = answer
				continue
			}
			_, err := c.sendWithin(w.rank, answer).runToEnd(ctx)
			errs = append(errs, err)
		}
		wishes = wishes[n:]
	}
	return own, errors.Join(errs...)
}

// sendWithin is a send about this communicator, and within what such a message of a rank
// matches.
func (c *Comm) sendWithin(rank int, buf []byte) *operation {
	op := c.sendTo(rank, buf)
	op.context++
	return op
}

func (c *Comm) within(rank int) tagged.Pattern {
	return tagged.Pattern{Context: c.context + 1, Source: uint32(c.group[rank])}
}

// memberSize is what an answer has of each rank.
const memberSize = 4 + 4

// part makes the communicator that rank 0 has decided on, in which this rank has the
// context that it has chosen.
func (c *Comm) part(answer []byte, context uint32) (*Comm, error) {
	wrong := func(format string, args ...any) error {
		return &RankError{Rank: 0, Cause: fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)}
	}
	if len(answer)%memberSize != 0 {
		return nil, wrong("%d bytes about a communicator", len(answer))
	}
	own := -1
	group := make([]int, 0, len(answer)/memberSize)
	contexts := make([]uint32, 0, cap(group))
	for ; len(answer) > 0; answer = answer[memberSize:] {
		world, number := int(binary.LittleEndian.Uint32(answer)), binary.LittleEndian.Uint32(answer[4:])
		if world >= len(c.engine.peers) || c.rankOf(world) < 0 || slices.Contains(group, world) {
			return nil, wrong("rank %d in a communicator", world)
		}
		if number == 0 || number%2 != 0 || number/2 > uint32(c.engine.mostContexts()) {
			return nil, wrong("context %d of rank %d in a communicator", number, world)
		}
		if world == c.engine.rank {
			if own = len(group); number != context {
				return nil, wrong("context %d instead of %d of this rank in a communicator", number, context)
			}
		}
		group, contexts = append(group, world), append(contexts, number)
	}
	if own < 0 {
		return nil, wrong("a communicator without this rank")
	}
	return newComm(c.engine, group, contexts, own), nil
}

// mostContexts is how many communicators this rank may be in beside the world.
func (e *engine) mostContexts() int {
	if e.provider != nil {
		return tagged.MaxMatchedContext / 2
	}
	return 1<<31 - 1
}

// newContext is the next context of messages to this rank, 0 if there is none.
func (e *engine) newContext() (context uint32) {
	e.do(func(efa.Progress) {
		if int64(e.contexts) >= int64(e.mostContexts()) {
			return
		}
		e.contexts++
		context = e.contexts << 1
		if e.unclosed == nil {
			e.unclosed = make(map[uint32]struct{})
		}
		e.unclosed[context] = struct{}{}
	})
	return context
}

// isOpen says whether there may be receives in a context still.
func (e *engine) isOpen(context uint32) bool {
	context &^= 1 // for both of the communicator
	if context == worldContext {
		return true
	}
	_, is := e.unclosed[context]
	return is
}

// leave ends a communicator beside the world: nobody can receive what waits in it.
func (c *Comm) leave(p efa.Progress) {
	e := c.engine
	if x := c.extension.Load(); x != nil {
		x.close(p)
	} else {
		c.tellGone(p)
	}
	e.endContext(p, c.context)
}

// endContext drops what waits in a context of a communicator, and what is still to come.
func (e *engine) endContext(p efa.Progress, context uint32) {
	if e.closed {
		return
	}
	delete(e.unclosed, context)
	for _, one := range []uint32{context, context + 1} {
		for e.drop(p, one) {
			continue
		}
	}
	e.arrivals.used -= int64(len(e.early[context])) * overhead
	delete(e.early, context)
	delete(e.absent, context)
	e.letGo(p)
}

// drop takes a message out of a context that is not open, if there is one.
func (e *engine) drop(p efa.Progress, context uint32) bool {
	m, ok := e.matcher.Take(tagged.Pattern{Context: context, Source: tagged.AnySource, Ignore: tagged.AnyTag})
	if !ok {
		return false
	}
	sender := m.Value.local
	e.taken(p, m.Value)
	if sender != nil {
		e.sends.give(sender)
		sender.complete(p, errClosed)
	}
	return true
}
