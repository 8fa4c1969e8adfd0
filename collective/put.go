package collective

import (
	"errors"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// put begins to write to a peer.
func (g *group) put(p progress, c *call, s *schedule.Step) (wait bool, err error) {
	peer := &g.members[s.Peer]
	var to place
	e := c.shape.element
	offset := s.Dst.Offset * e
	switch {
	case g.gone(s.Peer, c.number) != nil:
		return false, g.gone(s.Peer, c.number)
	case c.large:
		r := &peer.ready[c.number%slots]
		if !r.valid || r.number != c.number {
			return true, nil
		}
		if r.fingerprint != c.fingerprintWith(s.Peer) {
			return false, &MismatchError{s.Peer, c.shape.Collective}
		}
		to = r.output
		if s.Dst.Space == schedule.Scratch {
			to = r.scratch
		}
	default:
		if !peer.known || peer.released+slots <= c.number {
			return true, nil
		}
		to.Remote = peer.cache
		offset += int(c.number%slots) * g.slot
		if s.Dst.Space == schedule.Scratch {
			offset += aligned(c.planned.output)
		}
	}
	peer.put = c.number + 1
	var src []byte
	if s.Action == schedule.Put {
		src = c.at(s.Src)
	}
	if !c.large {
		if left, err := g.leave(p, c, s, src, offset); left || err != nil {
			return unreachable(err)
		}
	}
	if s.Action == schedule.Signal && !c.large {
		return unreachable(g.signal(p, c, s, to.Remote))
	}
	to.Address += uint64(offset)
	if c.large {
		if crossed, err := g.cross(p, c, s, src, to); crossed || err != nil {
			return unreachable(err)
		}
	}
	if s.Action == schedule.Signal {
		return unreachable(g.notifyArrived(p, c.number, s))
	}
	remote := to.Remote
	local := c.exposures[s.Src.Space]
	if !g.hasWord(s, len(src)) {
		return unreachable(g.putAndNotify(p, c, s, src, local, remote))
	}
	if err := g.writeWord(p, c, s, src, local, remote, &g.landings[c.number%slots][s.Peer]); err != nil {
		return unreachable(err)
	}
	if c.flying++; c.flying == 1 && c.large {
		g.attend(p)
	}
	return false, nil
}

// signal tells a peer something. A write of nothing much carries the word, which costs half of
// what a notice does. Its byte is the group's, so that the call need not wait for its end.
func (g *group) signal(p progress, c *call, s *schedule.Step, cache fabric.Remote) error {
	if g.cache == nil || !g.hasWord(s, 1) {
		return g.notifyArrived(p, c.number, s)
	}
	at := g.reserved() + g.rank
	cache.Address += uint64(at)
	return g.writeWord(p, c, s, g.cache.memory[at:at+1], g.cache.exposure, cache, &g.signals[s.Peer])
}

// writeWord begins a write that carries a word.
func (g *group) writeWord(p progress, c *call, s *schedule.Step, src []byte, local *efa.Exposure, remote fabric.Remote, sender efa.Sender) error {
	c.write = efa.RemoteWrite{Src: src, Local: local, To: remote, Tell: true, Immediate: wordOf(c.number, g.rank, s.Number, g.released)}
	if err := g.comm.Write(p, s.Peer, g.members[s.Peer].window, &c.write, sender); err != nil {
		return err
	}
	g.worded(s)
	g.flying++
	return nil
}

// worded notes that a word is on its way.
func (g *group) worded(s *schedule.Step) {
	to := &g.members[s.Peer]
	if to.told > 0 && s.Number < fewNumbers {
		to.told = g.released + 1
	}
	to.words++
}

// hasWord says whether a write of so many bytes for a step can carry a word.
func (g *group) hasWord(s *schedule.Step, bytes int) bool {
	return g.members[s.Peer].window >= 0 && g.fitsWord(s) && bytes <= g.comm.MaxWrite(s.Peer)
}

// unreachable has a call wait for word of a peer that is gone, as it seems: what that has
// said before may be why.
func unreachable(err error) (wait bool, fatal error) {
	if err != nil {
		var lost *comm.RankError
		if errors.As(err, &lost) {
			return true, nil
		}
	}
	return false, err
}

// notifyArrived tells a peer that what was put is there.
func (g *group) notifyArrived(p progress, number uint64, s *schedule.Step) error {
	n := comm.Notice{Tag: noticeTag(noticeArrived, number), ID: uint64(s.Number)}
	if g.notifyNear(s.Peer, []comm.Notice{n}, nil) {
		return nil
	}
	return g.comm.Notify(p, s.Peer, n)
}

// landing hears of the ends of writes to a rank, by the call that has a slot.
type landing struct {
	group      *group
	slot, rank int
}

// Sent implements efa.Sender.
func (l *landing) Sent(p progress, err error) { l.group.owners[l.slot].landed(p, l.rank, err) }

// signals hears of the ends of signals to a rank, for which no call waits.
type signals struct {
	group *group
	rank  int
}

// Sent implements efa.Sender.
func (s *signals) Sent(p progress, err error) {
	g := s.group
	g.flying--
	if err != nil {
		g.members[s.rank].unsure = true
		if errors.Is(err, efa.ErrPeerLost) {
			err = &comm.RankError{Rank: s.rank, Cause: err}
		}
	}
	switch {
	case g.failure != nil:
		g.tellStopped(p)
		g.settle(p)
		g.retire(p)
	case err != nil:
		g.fail(p, err)
	}
}

// landed takes in the end of a write.
func (c *call) landed(p progress, rank int, err error) {
	g := c.group
	c.flying--
	g.flying--
	if errors.Is(err, efa.ErrPeerLost) {
		err = &comm.RankError{Rank: rank, Cause: err}
	}
	if err != nil {
		g.members[rank].unsure = true
		var in *efa.InFlightError
		if errors.As(err, &in) {
			c.inFlight, c.stranded = errors.Join(c.inFlight, in), true
		}
	}
	switch {
	case c.failure != nil:
		g.tellStopped(p)
		g.settle(p)
		g.retire(p)
	case err != nil:
		g.fail(p, err)
	default:
		if c.flying == 0 && c.large {
			g.attend(p)
		}
		g.run(p, c)
	}
}

// loudPut is a put that its peer is to be told of by a notice, when all of it is there.
type loudPut struct {
	call *call
	step *schedule.Step
	left int
}

// putAndNotify writes what does not go with a word, in pieces if need be.
func (g *group) putAndNotify(p progress, c *call, s *schedule.Step, src []byte, local *efa.Exposure, to fabric.Remote) error {
	l := &loudPut{call: c, step: s}
	most := g.comm.MaxWrite(s.Peer)
	for len(src) > 0 {
		n := min(len(src), most)
		c.write = efa.RemoteWrite{Src: src[:n], Local: local, To: to}
		if err := g.comm.Write(p, s.Peer, -1, &c.write, l); err != nil {
			return err
		}
		l.left++
		c.flying++
		g.flying++
		src = src[n:]
		to.Address += uint64(n)
	}
	return nil
}

// Sent implements efa.Sender.
func (l *loudPut) Sent(p progress, err error) {
	l.left--
	c := l.call
	if err == nil && l.left == 0 && c.failure == nil {
		err = c.group.notifyArrived(p, c.number, l.step)
	}
	c.landed(p, l.step.Peer, err)
}
