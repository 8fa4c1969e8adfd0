package schedule

import "slices"

// script is the plan of a rank in the making.
type script struct {
	rank, size int
	Options
	plan  Plan
	peers []tally
}

// tally counts what a rank has put to a peer and awaited of it so far.
type tally struct{ peer, puts, awaits int }

// begin checks what the ranks of a call say, and begins the plan of one of them. Each has
// length units.
func (c Collective) begin(rank, size, root, length int, o Options) (*script, error) {
	if err := checkLength(size, length); err != nil {
		return nil, err
	}
	return c.beginLong(rank, size, root, length, o)
}

// beginLong is begin where length is the longest span that is cut into pieces, and was
// checked.
func (c Collective) beginLong(rank, size, root, length int, o Options) (*script, error) {
	if err := o.check(size, root, length); err != nil {
		return nil, err
	}
	if err := checkRank(rank, size); err != nil {
		return nil, err
	}
	algorithm, err := c.choose(o)
	if err != nil {
		return nil, err
	}
	o.Algorithm = algorithm
	return &script{rank: rank, size: size, Options: o, plan: Plan{Steps: make([]Step, 0, 16)}}, nil
}

// with finds what is counted of a peer. Plans that deal with many peers count for
// themselves, and use putNumber and awaitNumber.
func (s *script) with(peer int) *tally {
	for i := range s.peers {
		if s.peers[i].peer == peer {
			return &s.peers[i]
		}
	}
	s.peers = append(s.peers, tally{peer: peer})
	return &s.peers[len(s.peers)-1]
}

// need makes Scratch at least so long.
func (s *script) need(units int) { s.plan.Scratch = max(s.plan.Scratch, units) }

// put puts src to dst of the peer as the next that goes there.
func (s *script) put(peer int, src, dst Span) {
	if src.Length == 0 {
		return
	}
	t := s.with(peer)
	s.putNumber(peer, t.puts, src, dst)
	t.puts++
}

func (s *script) putNumber(peer, number int, src, dst Span) {
	if src.Length > 0 {
		s.add(Step{Action: Put, Peer: peer, Number: number, Src: src, Dst: dst})
	}
}

// await awaits the next that the peer puts, to a span of this rank.
func (s *script) await(peer int, dst Span) {
	if dst.Length == 0 {
		return
	}
	t := s.with(peer)
	s.awaitNumber(peer, t.awaits, dst)
	t.awaits++
}

func (s *script) awaitNumber(peer, number int, dst Span) {
	s.add(Step{Action: Await, Peer: peer, Number: number, Dst: dst})
}

// reduce makes dst of what lower ranks have contributed and what higher ranks have.
func (s *script) reduce(dst, lower, higher Span) {
	if dst.Length > 0 {
		s.add(Step{Action: Reduce, Src: lower, Other: higher, Dst: dst})
	}
}

func (s *script) copy(dst, src Span) {
	if dst.Length > 0 {
		s.add(Step{Action: Copy, Src: src, Dst: dst})
	}
}

// settle waits until what a span has may be changed, if a put reads it.
func (s *script) settle(span Span) {
	for _, step := range s.plan.Steps {
		if step.Action == Put && step.Src.overlaps(span) {
			s.add(Step{Action: Settle})
			return
		}
	}
}

// expect makes room for so many steps more.
func (s *script) expect(steps int) { s.plan.Steps = slices.Grow(s.plan.Steps, steps) }

func (s *script) add(step Step) { s.plan.Steps = append(s.plan.Steps, step) }

// keep copies the contribution of the rank to the result, where it is not in place. The
// result of a single rank is that.
func (s *script) keep(length int) {
	if !s.InPlace {
		s.copy(Span{Output, 0, length}, Span{Input, 0, length})
	}
}
