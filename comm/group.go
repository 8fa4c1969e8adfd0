package comm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-go/weft/tagged"
)

// Undefined is the color of a rank that is to be in none of the communicators that
// Split makes.
const Undefined = -1

// Dup makes a communicator of the same ranks whose messages are apart from those of
// this one. It is collective. If it fails, on any rank, no more communicators can be
// made of this one.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) { return c.Split(ctx, 0, c.rank) }

// Split makes a communicator of the ranks that give the same color, 0 or higher, in
// the order of their keys, and of their ranks here where these are equal. With
// Undefined the result is nil. It is collective; if it fails, on any rank, no more
// communicators can be made of this one.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	if err := c.checkUse(); err != nil {
		return nil, err
	}
	if color < Undefined {
		return nil, &ArgumentError{"color", color, "0 or more, or Undefined"}
	}
	mine := binary.LittleEndian.AppendUint64(nil, uint64(color))
	mine = binary.LittleEndian.AppendUint64(mine, uint64(key))
	var answer []byte
	var err error
	if c.rank == 0 {
		answer, err = c.leadSplit(ctx, mine)
	} else {
		answer, err = c.followSplit(ctx, mine)
	}
	if err != nil {
		return nil, err
	}
	if color == Undefined {
		return nil, nil
	}
	return c.part(answer)
}

// followSplit tells rank 0 what this rank wants, and returns its answer: the context
// and the ranks of the world.
func (c *Comm) followSplit(ctx context.Context, mine []byte) ([]byte, error) {
	if _, err := c.sendOn(c.context+1, mine, 0, 0, false).runToEnd(ctx); err != nil {
		return nil, err
	}
	answer := make([]byte, 4+4*len(c.group))
	status, err := c.receiveOn(c.within(0), answer).runToEnd(ctx)
	return answer[:status.Length], err
}

// leadSplit decides who belongs together.
func (c *Comm) leadSplit(ctx context.Context, mine []byte) ([]byte, error) {
	number, numberErr := c.engine.newContext()
	type wish struct{ color, key, rank int }
	wishes := make([]wish, len(c.group))
	for rank := range wishes {
		var buf [16]byte
		if rank == 0 {
			copy(buf[:], mine)
		} else if status, err := c.receiveOn(c.within(rank), buf[:]).runToEnd(ctx); err != nil {
			return nil, err
		} else if status.Length != len(buf) {
			return nil, &RankError{Rank: rank, Cause: ErrProtocol}
		}
		wishes[rank] = wish{int(binary.LittleEndian.Uint64(buf[:])), int(binary.LittleEndian.Uint64(buf[8:])), rank}
	}
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
		// Without a number the answer is empty, and everybody fails.
		var answer []byte
		if numberErr == nil {
			answer = binary.LittleEndian.AppendUint32(nil, number)
			for _, w := range wishes[:n] {
				answer = binary.LittleEndian.AppendUint32(answer, uint32(c.group[w.rank]))
			}
		}
		for _, w := range wishes[:n] {
			if w.rank == 0 {
				own = answer
				continue
			}
			_, err := c.sendOn(c.context+1, answer, w.rank, 0, false).runToEnd(ctx)
			errs = append(errs, err)
		}
		wishes = wishes[n:]
	}
	return own, errors.Join(append(errs, numberErr)...)
}

// within is what a message of a rank about this communicator matches.
func (c *Comm) within(rank int) tagged.Pattern {
	return tagged.Pattern{Context: c.context + 1, Source: uint32(c.group[rank])}
}

// part makes the communicator that rank 0 has decided on.
func (c *Comm) part(answer []byte) (*Comm, error) {
	if len(answer) < 8 || len(answer)%4 != 0 {
		return nil, &RankError{Rank: 0, Cause: fmt.Errorf("%w: %d bytes about a communicator", ErrProtocol, len(answer))}
	}
	number, answer := binary.LittleEndian.Uint32(answer), answer[4:]
	own := -1
	group := make([]int, 0, len(answer)/4)
	for len(answer) > 0 {
		world := int(binary.LittleEndian.Uint32(answer))
		answer = answer[4:]
		if world >= len(c.engine.peers) || c.rankOf(world) < 0 || slices.Contains(group, world) {
			return nil, &RankError{Rank: 0, Cause: fmt.Errorf("%w: rank %d in a communicator", ErrProtocol, world)}
		}
		if world == c.engine.rank {
			own = len(group)
		}
		group = append(group, world)
	}
	if own < 0 {
		return nil, &RankError{Rank: 0, Cause: fmt.Errorf("%w: a communicator without this rank", ErrProtocol)}
	}
	return newComm(c.engine, number, group, own), nil
}

// mostContexts is how many communicators a rank may make as their first.
const mostContexts = 1<<15 - 1

// newContext gives out the numbers of a communicator, which no other rank gives out:
// the upper half is this rank's.
func (e *engine) newContext() (uint32, error) {
	n := e.contexts.Add(1)
	if n > mostContexts {
		return 0, &ArgumentError{"number of communicators made by this rank", int(n), fmt.Sprintf("at most %d", mostContexts)}
	}
	return uint32(e.rank)<<16 | n<<1, nil
}
