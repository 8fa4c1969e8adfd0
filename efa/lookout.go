package efa

import (
	"slices"
	"sync/atomic"

	"github.com/weft-go/weft/internal/cacheline"
)

// Lookout has something of its own to look at beside the device, such as memory to which
// processes of this host write. Look takes in what is there, and says whether anything was. It
// is called in the progress role, where it must not block, by whoever takes a turn.
type Lookout interface {
	Look(p Progress) (found bool)
}

// lookout is one that is called; often, where what somebody waits for may come to one of so many
// places, and not by the device.
type lookout struct {
	Lookout
	often int
}

// lookouts are those of a reactor. They belong to the role, but for found.
type lookouts struct {
	all      []lookout
	places   int         // at which those that are called often look
	device   int         // the operations of connections that it has
	last     bool        // the last that came was theirs, and not the device's
	turnless int         // how often in a row they were called without a turn
	found    atomic.Bool // by them, since the device was told
}

// LookOut has the reactor call l now and then, until Rest. If often is how many places l looks
// at, and not 0, who waits calls it again and again, and reads the queue of the device less often.
// Called again, it changes that.
func (p Progress) LookOut(l Lookout, often int) {
	o := &p.reactor.lookouts
	i := o.index(l)
	if i < 0 {
		i = len(o.all)
		o.all = append(o.all, lookout{Lookout: l})
	}
	o.places += often - o.all[i].often
	o.all[i].often = often
}

// Rest ends LookOut.
func (p Progress) Rest(l Lookout) {
	o := &p.reactor.lookouts
	if i := o.index(l); i >= 0 {
		o.places -= o.all[i].often
		o.all = slices.Delete(o.all, i, i+1)
	}
}

// index is where one is, or -1.
func (o *lookouts) index(l Lookout) int {
	for i := range o.all {
		if o.all[i].Lookout == l {
			return i
		}
	}
	return -1
}

// SameHost says that all peers are processes of this host, which the device does not notify:
// what they write to memory that they share with this one is seen as soon as what the device
// has.
func (r *Reactor) SameHost() bool { return r.attributes.SameHostOnly && !r.attributes.Notifies }

const (
	// Between two turns so many places are looked at, one or more times each: where the last that
	// came was there, and where it was the device's.
	looksAgain  = 128
	looksAround = 8
	// So often something may be found in a row without a turn as mostTurnless says. Where others
	// want the core, there are looksInCrowd before they have it, with a turn each time, or, where
	// the last that came was the lookouts', every eighth: each counts as crowdedTurnless.
	looksInCrowd    = 2
	mostTurnless    = 64
	crowdedTurnless = 8
	// While the device has something of a connection's, there are turns, turnsAround before others
	// have the core, that look at its queue looksOfTurn more times.
	turnsAround = 16
	looksOfTurn = 4
	// manyPlaces take as long as a turn: they are looked at in every manyTurns only, and the more
	// there are, the less often without a turn.
	manyPlaces = 32
	manyTurns  = 8
)

// look calls the lookouts once, or those that are called often.
func (r *Reactor) look(all bool) (found bool) {
	o := &r.lookouts
	// One that is called may end its LookOut, and one behind it is then called next time.
	for i := 0; i < len(o.all); i++ {
		if all || o.all[i].often > 0 {
			found = o.all[i].Look(Progress{r}) || found
		}
	}
	if found {
		o.last = true
		if !o.found.Load() {
			o.found.Store(true)
		}
	}
	return found
}

// lookInTurn is what a turn has of that, and says whether anything was there, as a number. The
// background, whose turns may be far apart, leaves none out.
func (r *Reactor) lookInTurn() (found int) {
	o := &r.lookouts
	few := len(o.all)+o.places < manyPlaces
	if len(o.all) > 0 && (few || r.lookAround || r.turns%manyTurns == 0) && r.look(true) {
		return 1
	}
	return 0
}

// lookOut calls the lookouts until there is something, or it is time for a turn, which it takes.
// It says whether there was anything.
func (r *Reactor) lookOut() (active bool) {
	o := &r.lookouts
	usable := !r.pending() && r.broken == nil && !r.closed.Load()
	if usable && o.device > 0 && !r.crowd.here {
		// What is waited for may come either way.
		for range turnsAround {
			if r.step(looksOfTurn) > 0 {
				return true
			}
		}
		return false
	}
	if usable && o.turnless < mostTurnless/(1+o.places/manyPlaces) {
		o.turnless++
		looks := looksAround
		switch {
		case r.crowd.here:
			looks = looksInCrowd
		case o.last:
			looks = looksAgain
		}
		for range max(looks/o.places, 1) {
			if r.intake.Load() != nil || o.places == 0 {
				break
			}
			if r.look(false) {
				return true
			}
			// Who is about to write there has its cache line for long enough.
			cacheline.Rest()
		}
		// Who has a ring of a peer's may have to send by the device all the same.
		if r.crowd.here && o.last && r.intake.Load() == nil && len(r.beside.inboxes) == 0 {
			o.turnless += crowdedTurnless - 1
			return false
		}
	}
	o.turnless = 0
	return r.step(0) > 0
}
