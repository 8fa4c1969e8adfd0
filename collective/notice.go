package collective

import (
	"fmt"

	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/fabric"
)

// Notices between the ranks of a communicator. A tag has the kind in its lowest 8 bits,
// and above them the number of a call.
const (
	// noticeReleased: the sender has done all calls before ID. Its cache is at Remote, and
	// the lowest 16 bits of Length are its window and 1, or 0. The other bits, and those of
	// the tag, are its parameters (introduction).
	noticeReleased = iota + 1
	// noticeReady: the sender's memory for a call is at Remote, with Scratch at Length
	// behind that, unless it is scratchApart. ID is the fingerprint of the call.
	noticeReady
	// noticeArrived: put number ID of a call is there, or there is nothing to be there.
	noticeArrived
	// noticeAsk: the sender wants to be told when the call is done.
	noticeAsk
	// noticeFailed: rank Length has given up, and so has the sender. ID is the reason, and
	// behind its reasonBits the rank that was lost to it, if that is why.
	noticeFailed
	// noticeClosed: the sender has done all calls before ID, and closed the communicator.
	// It has written Length words to the receiver.
	noticeClosed
	// noticeScratch: the sender's Scratch for a call is at Remote. noticeReady follows.
	noticeScratch
	// noticeStopped: the sender writes no more. It has written ID words to the receiver.
	noticeStopped
	// noticeRefused: the sender was refused the call.
	noticeRefused
	// noticeShared: the sender's cache is memory of process ID, there known as Length, and has
	// the cookie that is in Remote.
	noticeShared
	// noticeEnded: the sender's window with the name ID is no more.
	noticeEnded
)

// scratchApart is, in noticeReady, for Scratch that is where noticeScratch had it.
const scratchApart = 1<<64 - 1

// mostNumber is above the number of every put or signal from one rank to another in a
// call.
const mostNumber = 1 << 20

func noticeTag(kind uint64, number uint64) uint64 { return kind | number<<8 }

// A word of a write: 8 bits about the put, 12 of the source, 4 of the call's number. Those
// of one of the first puts are its number, and by how many calls the source is behind: so
// ranks that write to each other need no notices of what is released. Those of others are
// a number.
const (
	fewNumbers     = 1 << 5
	behindBits     = 2
	mostFew        = fewNumbers << behindBits
	mostWordNumber = fewNumbers + 1<<8 - mostFew
	mostWordSource = 1 << 12
	wordCalls      = 1 << 4
)

// A call begins when there is a slot for it: a rank is never behind by more.
const _ = uint(1<<behindBits - slots)

func wordOf(call uint64, source, number int, released uint64) uint32 {
	put := number + mostFew - fewNumbers
	if number < fewNumbers {
		put = number | int(call-released)*fewNumbers
	}
	return uint32(put) | uint32(source)<<8 | uint32(call%wordCalls)<<20
}

// Notice implements comm.Extension.
func (g *group) Notice(p progress, source int, n comm.Notice) error {
	return g.noticed(p, source, n, nil)
}

// noticed takes in a notice, of a window that is mapped if it is of one.
func (g *group) noticed(p progress, source int, n comm.Notice, window *mapping) error {
	number := n.Tag >> 8
	from := &g.members[source]
	if g.failure != nil {
		g.noticedLate(p, from, n)
		return nil
	}
	switch n.Tag & 0xff {
	case noticeReleased:
		window := int(n.Length & 0xffff)
		if window > 1<<8 {
			return fmt.Errorf("%w: window %d", comm.ErrProtocol, window-1)
		}
		if err := g.introduction.differs(introduction{number, n.Length &^ 0xffff}, source); err != nil {
			// Before anything is written to its memory.
			g.fail(p, err)
			return nil
		}
		// A write that was begun later may have come before.
		from.known, from.released = true, max(from.released, n.ID)
		from.cache, from.window = n.Remote, window-1
		g.tellDrained()
		g.resume(p)
	case noticeShared:
		g.invited(p, source, n)
	case noticeScratch:
		from.scratch[number%slots] = apart{number, place{n.Remote, window}}
	case noticeReady:
		return g.ready(p, source, number, n, window)
	case noticeEnded:
		if from.near != nil {
			return from.near.unmapWindow(windowName(n.ID))
		}
	case noticeArrived:
		// What is ahead of this rank by more cannot have been begun.
		if number >= g.released+slots || n.ID >= mostNumber {
			return fmt.Errorf("%w: put %d of call %d, and %d are done", comm.ErrProtocol, n.ID, number, g.released)
		}
		if number < g.released {
			// All of a call has come before it is done: it is of one that this rank has not made.
			g.fail(p, g.mismatch(source, number, 0))
			return nil
		}
		g.arrived(p, number, source, int(n.ID))
	case noticeAsk:
		if number < g.released {
			g.tell(p, source)
		} else {
			if from.asks == 0 {
				g.asking++
			}
			from.asks = max(from.asks, number+1)
		}
	case noticeClosed:
		if n.ID < from.released {
			return fmt.Errorf("%w: closed after call %d, and %d are released", comm.ErrProtocol, n.ID, from.released)
		}
		from.closed, from.released = true, n.ID
		from.stopped, from.stoppedAt = true, n.Length
		g.tellDrained()
		g.resume(p)
	case noticeFailed:
		lost := n.ID >> reasonBits
		if n.Length >= uint64(g.size) || lost >= uint64(g.size) {
			return fmt.Errorf("%w: rank %d of %d has given up for reason %#x", comm.ErrProtocol, n.Length, g.size, n.ID)
		}
		g.fail(p, &AbortError{Rank: int(n.Length), Reason: AbortReason(n.ID), Lost: int(lost)})
	case noticeStopped:
		from.stopped, from.stoppedAt = true, n.ID
	case noticeRefused:
		g.noticedRefusal(p, source, number)
	default:
		return fmt.Errorf("%w: kind %d", comm.ErrProtocol, n.Tag&0xff)
	}
	return nil
}

// Left implements comm.Extension: the rank has made no call.
func (g *group) Left(p progress, rank int) error {
	return g.Notice(p, rank, comm.Notice{Tag: noticeTag(noticeClosed, 0)})
}

// reasonBits are those of an AbortReason.
const reasonBits = 8

// ready takes in where a peer's memory for a call is.
func (g *group) ready(p progress, source int, number uint64, n comm.Notice, window *mapping) error {
	from := &g.members[source]
	r := &from.ready[number%slots]
	// A peer that needs the place again is done with the call that had it, and has all that
	// this rank puts to it there; this rank may still wait for others.
	if r.valid && r.number >= number {
		return fmt.Errorf("%w: it was ready for call %d, and is for %d", comm.ErrProtocol, r.number, number)
	}
	// One by the ring and one by the device may change places.
	from.announced = max(from.announced, number+1)
	*r = readiness{valid: true, number: number, fingerprint: n.ID, output: place{n.Remote, window}, scratch: place{n.Remote, window}}
	if n.Length == scratchApart {
		// Without a noticeScratch, there is none.
		r.scratch = place{}
		if apart := &from.scratch[number%slots]; apart.number == number {
			r.scratch = apart.place
		}
	} else {
		r.scratch.Address += n.Length
	}
	if c := g.active(number); c != nil {
		g.run(p, c)
	}
	return nil
}

// Written implements comm.Extension.
func (g *group) Written(p progress, word uint32) {
	source := int(word >> 8 % mostWordSource)
	if source >= len(g.members) {
		return
	}
	m := &g.members[source]
	m.heard++
	g.takeWord(p, source, word)
	if m.leaving != nil && m.heard >= m.stoppedAt {
		g.lose(p, source, comm.ErrLeft)
	}
}

func (g *group) takeWord(p progress, source int, word uint32) {
	if g.failure != nil {
		g.settle(p)
		g.retire(p)
		return
	}
	number := g.released + uint64((word>>20-uint32(g.released%wordCalls))%wordCalls)
	if source >= len(g.members) {
		return
	}
	if number >= g.released+slots {
		// All of a call has come before it is done, and nothing of one for which there is no
		// slot yet: it is of a call that this rank has not made.
		g.fail(p, g.mismatch(source, number-wordCalls, 0))
		return
	}
	put := int(word & 0xff)
	if put >= mostFew {
		g.arrived(p, number, source, put-mostFew+fewNumbers)
		return
	}
	from := &g.members[source]
	if behind := uint64(put / fewNumbers); behind <= number && number-behind > from.released {
		from.released = number - behind
		g.tellDrained()
		if g.released+1 < g.next {
			// Another call may have waited for that.
			defer g.resume(p)
		}
	}
	g.arrived(p, number, source, put%fewNumbers)
}

// readiness is where a peer's memory for a call is.
type readiness struct {
	valid       bool
	number      uint64
	fingerprint uint64
	// output and scratch are where the spaces of these names begin.
	output, scratch place
}

// place is memory of a peer.
type place struct {
	fabric.Remote
	window *mapping // nil if it is in none that is mapped
}

// apart is where a peer's Scratch for a call is, if that is not behind its Output.
type apart struct {
	number uint64
	place
}
