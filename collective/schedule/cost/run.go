package cost

import (
	"math"
	"time"

	"github.com/weft-go/weft/collective/schedule"
)

// A run carries out plans. Times are in nanoseconds from the beginning.
type run struct {
	Network
	size int // of the call
	// ranks are those that are looked at, from first on: all, or those of one node.
	first int
	ranks []rank
	// flipped is how they stand for the others, and how they are told apart at the same time.
	flipped bool
	nodes   []node
	queue   queue
	there   map[uint64]float64 // when what a rank awaits, or will, was there
	fetched map[uint64]event   // what of that the rank has to move
	// numbers is how many numbers a call has for what goes from one rank to another.
	numbers int
	// released has, by call in a row, the ranks from which each hears when they are done with
	// it, or nil if no rank says so.
	released [][][]int32
	// said is how many calls were done when a rank last said so to another; nil if there is one
	// call only.
	said map[between]int
}

type rank struct {
	steps []step
	next  int
	now   float64
	// waits is the key of what the rank waits for; 0 if it does not.
	waits uint64
	// goes is when it can go on, where ranks share cores, as far as is known.
	goes float64
	// under is how many of its puts are on their way, and settled when those that were are
	// known to be there.
	under   int
	settled float64
	local   port
	ends    []float64 // of calls in a row
	// moved is how many pieces it has moved of a put, and moves until when it is busy with data.
	moved int
	moves float64
	// heard is whose put it has awaited last.
	heard int32
}

// node has the links of its ranks, and the cores if they are not enough.
type node struct {
	links []port
	cores []core
}

// port is when a link is free in each direction.
type port struct{ out, in float64 }

// ended is the action of a step that notes the end of a call in a row, and entered of one by
// which a rank is busy with what a call takes beside its plan.
const (
	ended schedule.Action = 1<<7 + iota
	entered
)

// step is what counts of a step of a plan.
type step struct {
	action schedule.Action
	peer   int32
	number int32
	bytes  float64 // of Dst
	// notice: it is one that costs Network.Notice.
	notice bool
	// fetch: it is the peer that moves what is put. direct: it is put to memory of the caller's.
	// given: it is a copy of what others have put.
	fetch, direct, given bool
}

func newRun(size, first, ranks int, network Network) *run {
	perNode := network.RanksPerNode
	r := &run{Network: network, size: size, first: first, ranks: make([]rank, ranks), there: map[uint64]float64{}, fetched: map[uint64]event{}}
	r.nodes = make([]node, (ranks-1)/perNode+1)
	for i := range r.nodes {
		r.nodes[i].links = make([]port, min(network.LinksPerNode, perNode))
		if network.CoresPerNode > 0 && network.CoresPerNode < perNode {
			r.nodes[i].cores = newCores(network)
			for j := i * perNode; j < min((i+1)*perNode, ranks); j++ {
				c := &r.nodes[i].cores[network.place(j)]
				c.ranks = append(c.ranks, int32(j))
			}
		}
	}
	return r
}

// finish carries out all steps, and says when the last rank has ended.
func (r *run) finish() time.Duration {
	for i := range r.ranks {
		if !r.shared(i) {
			r.queue.push(r.going(i, 0))
		}
	}
	for n := range r.nodes {
		for i := range r.nodes[n].cores {
			if c := &r.nodes[n].cores[i]; len(c.ranks) > 0 {
				r.turnAt(c, r.turning(n*r.CoresPerNode+i, 0))
			}
		}
	}
	for len(r.queue.events) > 0 {
		switch e := r.queue.pop(); {
		case e.put:
			r.arrive(e)
		case e.core:
			r.turn(e)
		case !r.resume(int(e.rank), e.at):
			// Something else comes first.
			r.queue.push(r.going(int(e.rank), r.ranks[e.rank].now))
		}
	}
	end := 0.0
	for i := range r.ranks {
		end = max(end, r.ranks[i].now, r.ranks[i].settled)
	}
	return duration(end)
}

// going is the event that a rank goes on. What happens at the same time has an order that is
// the same on every node, and puts come before ranks.
func (r *run) going(i int, at float64) event {
	return event{at: at, rank: int32(i), order: 1<<60 | uint64(i%r.RanksPerNode)}
}

// resume has a rank do its steps until it has to wait, or all are done; if it says no, something
// else comes first.
func (r *run) resume(i int, at float64) bool {
	me := &r.ranks[i]
	me.now = max(me.now, at)
	for me.next < len(me.steps) {
		e := r.going(i, me.now)
		if r.shared(i) {
			_, number := r.coreOf(i)
			e = r.turning(number, me.now)
		}
		if r.queue.earlier(&e) {
			return false
		}
		s := &me.steps[me.next]
		switch s.action {
		case schedule.Put, schedule.Signal:
			switch {
			case !r.moves(i, s):
			case r.together(i, s):
				r.busy(i, seconds(s.bytes/r.CopyRate))
				me.moves = me.now
			case s.direct && r.LocalDirect > 0:
				r.busy(i, seconds(s.bytes/r.LocalDirect))
				me.moves = me.now
			case !r.move(i, s.bytes, r.alone()):
				continue
			}
			r.begin(i, s)
		case schedule.Await:
			key := awaitKey(i, int(s.peer), int(s.number))
			at, ok := r.there[key]
			if !ok {
				me.waits, me.goes = key, never
				return true
			}
			if at > me.now && r.shared(i) {
				me.goes = at
				return true
			}
			me.now = max(me.now, at)
			if e, is := r.fetched[key]; is {
				if !r.move(i, e.bytes, r.alone()) {
					continue
				}
				delete(r.fetched, key)
				r.settle(e, me.now)
			}
			delete(r.there, key)
			me.heard = s.peer
			receive := r.Receive
			if r.local(i, int(s.peer)) {
				receive = r.LocalReceive
				if s.notice {
					receive = r.Notice
				}
			}
			r.busy(i, float64(receive))
		case schedule.Reduce, schedule.Copy:
			if me.moved == 0 {
				r.busy(i, float64(r.Step))
			}
			rate := r.CopyRate
			switch {
			case s.action == schedule.Reduce:
				rate = r.ReduceRate
				if r.ReduceTogether > 0 && r.neighbours(i, int(me.heard)) {
					rate = r.ReduceTogether
				}
			case s.given && r.Mapped && r.LocalAlone > 0 && !r.neighbours(i, int(me.heard)):
				// It comes from another core.
				rate = min(r.given(), rate)
			}
			if !r.move(i, s.bytes, rate) {
				continue
			}
		case entered:
			takes := float64(r.Call)
			if r.shared(i) {
				c, _ := r.coreOf(i)
				takes = c.takes(float64(r.Call+r.Turn), r.Jitter)
			}
			r.busy(i, takes)
		case schedule.Settle, ended:
			if me.under > 0 {
				me.waits, me.goes = settling, never
				return true
			}
			if me.settled > me.now && r.shared(i) {
				me.goes = me.settled
				return true
			}
			me.now = max(me.now, me.settled)
			if s.action == ended {
				me.ends = append(me.ends, me.now)
			}
		}
		me.next++
	}
	me.goes = never
	return true
}

// busy has a rank do something that takes so long.
func (r *run) busy(i int, takes float64) { r.ranks[i].now += takes }

// pieces is in how many data are moved that may move faster while no other rank moves any.
const pieces = 8

// moves says whether the rank that puts moves the data.
func (r *run) moves(i int, s *step) bool {
	return r.LocalByCore && !s.fetch && s.bytes > 0 && r.local(i, int(s.peer))
}

// together says whether what a rank puts stays in the caches of the core that it shares with its peer, and
// so is only copied.
func (r *run) together(i int, s *step) bool {
	return r.neighbours(i, int(s.peer)) && r.CopyRate > r.LocalBandwidth && !math.IsInf(r.CopyRate, 1)
}

// neighbours says whether a rank and another of its node share a core.
func (r *run) neighbours(i, peer int) bool {
	return r.shared(i) && r.local(i, peer) && r.place(i) == r.place(peer)
}

// alone is how fast a rank moves data to another while no other rank moves any.
func (r *run) alone() float64 {
	if r.LocalAlone == 0 {
		return r.LocalBandwidth
	}
	return r.LocalAlone
}

// given is how fast a rank copies what another has put, while no other rank moves any.
func (r *run) given() float64 {
	if r.LocalGiven == 0 {
		return r.LocalAlone
	}
	return r.LocalGiven
}

// move has a rank move a piece, or all if that makes no difference, and says whether that was the last. rate is
// what it has alone: while another one does the same, whatever that is, both have as much less, or more, as two that put to
// each other.
func (r *run) move(i int, bytes, rate float64) bool {
	me := &r.ranks[i]
	if r.LocalAlone == 0 {
		r.busy(i, seconds(bytes/rate))
		me.moves = me.now
		return true
	}
	start := me.now
	first := i - i%r.RanksPerNode
	for j := first; j < min(first+r.RanksPerNode, len(r.ranks)); j++ {
		if j != i && r.ranks[j].moves > start {
			rate *= r.LocalBandwidth / r.LocalAlone
			break
		}
	}
	r.busy(i, seconds(bytes/pieces/rate))
	me.moves = me.now
	me.moved = (me.moved + 1) % pieces
	return me.moved == 0
}

// begin has a rank begin a put. Where one node is looked at, its peer may be of another, and
// then the rank at the same place here stands for that peer. To that rank it comes from
// the one that is as far from it as this one from its peer.
func (r *run) begin(i int, s *step) {
	me := &r.ranks[i]
	me.under++
	peer := int(s.peer)
	local := r.local(i, peer)
	loud := r.Telling > 0 && r.size > r.Telling && s.action == schedule.Put
	to := (peer - r.first + r.size) % len(r.ranks)
	from, far := r.counterpart(r.first+i, peer, r.first+to)
	e := event{
		rank: int32(to), put: true, key: awaitKey(to, from, int(s.number)), bytes: s.bytes, local: local, loud: loud, fetch: local && s.fetch && s.bytes > 0, from: int32(i),
		order: uint64(to%r.RanksPerNode)<<40 | uint64(far)<<20 | uint64(s.number),
	}
	if !local {
		r.busy(i, float64(r.Overhead))
		if loud {
			r.busy(i, float64(r.Overhead))
		}
		link, bandwidth := r.link(i)
		start := max(me.now, link.out)
		link.out = start + seconds(s.bytes/bandwidth)
		e.at = start + float64(r.Latency)
		r.queue.push(e)
		return
	}
	overhead := r.LocalOverhead
	if s.notice {
		overhead = r.Notice
	}
	if loud {
		r.busy(i, float64(r.Notice))
	}
	if r.LocalByCore {
		r.busy(i, float64(overhead))
		e.at = me.now + float64(r.LocalLatency)
		r.queue.push(e)
		return
	}
	r.busy(i, float64(overhead))
	start := max(me.now, me.local.out)
	me.local.out = start + seconds(s.bytes/r.LocalBandwidth)
	e.at = start + float64(r.LocalLatency)
	r.queue.push(e)
}

// counterpart is the rank that puts to rank to what rank me puts to its peer, and how far from
// each other they are.
func (r *run) counterpart(me, peer, to int) (from, far int) {
	if r.flipped {
		return to ^ me ^ peer, me ^ peer
	}
	return (to + me - peer + r.size) % r.size, (peer - me + r.size) % r.size
}

// local says whether the peer is of the same node.
func (r *run) local(i, peer int) bool { return (r.first+i)/r.RanksPerNode == peer/r.RanksPerNode }

// link is the one of a rank, and what it can carry.
func (r *run) link(i int) (*port, float64) {
	links := r.nodes[i/r.RanksPerNode].links
	place := i % r.RanksPerNode
	if r.LinksPerNode >= r.RanksPerNode {
		return &links[place], r.Bandwidth * float64(r.LinksPerNode) / float64(r.RanksPerNode)
	}
	return &links[place*r.LinksPerNode/r.RanksPerNode], r.Bandwidth
}

// arrive has a put come to the link of its peer.
func (r *run) arrive(e event) {
	at := e.at
	to := &r.ranks[e.rank]
	if !e.local {
		link, bandwidth := r.link(int(e.rank))
		at = max(at, link.in) + seconds(e.bytes/bandwidth)
		link.in = at
	} else if !r.LocalByCore {
		at = max(at, to.local.in) + seconds(e.bytes/r.LocalBandwidth)
		to.local.in = at
	}
	known := at
	if !e.local {
		known += float64(r.Acknowledge)
	}
	if e.loud {
		// What it takes the rank to say so was in the begin of the put.
		latency := r.Latency
		if e.local {
			latency = r.LocalLatency
		}
		at = known + float64(latency)
	}
	r.there[e.key] = at
	if to.waits == e.key {
		r.ready(int(e.rank), at)
	}
	if e.fetch {
		r.fetched[e.key] = e
		return
	}
	r.settle(e, known)
}

// settle notes that what was put is known to be there.
func (r *run) settle(e event, known float64) {
	from := &r.ranks[e.from]
	from.settled = max(from.settled, known)
	from.under--
	if from.waits == settling && from.under == 0 {
		r.ready(int(e.from), from.settled)
	}
}

// duration is so many nanoseconds, or the longest one there is.
func duration(nanoseconds float64) time.Duration {
	if nanoseconds >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(nanoseconds))
}

// seconds are so many in nanoseconds.
func seconds(s float64) float64 { return s * 1e9 }

// settling is what a rank waits for that waits for all its puts. It is no key of an Await.
const settling = 1<<64 - 1

// awaitKey names what one of the ranks that are looked at awaits. It is not 0.
func awaitKey(to, from, number int) uint64 {
	return uint64(to+1)<<40 | uint64(from)<<20 | uint64(number)
}
