package efa

import "slices"

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

// LookOut has the reactor call l now and then, until Rest. If often is how many places l looks
// at, and not 0, who waits calls it again and again, and reads the queue of the device less often.
// Called again, it changes that.
func (p Progress) LookOut(l Lookout, often int) {
	r := p.reactor
	for i := range r.lookouts {
		if o := &r.lookouts[i]; o.Lookout == l {
			r.looking += often - o.often
			o.often = often
			return
		}
	}
	r.lookouts = append(r.lookouts, lookout{l, often})
	r.looking += often
}

// Rest ends LookOut.
func (p Progress) Rest(l Lookout) {
	r := p.reactor
	i := slices.IndexFunc(r.lookouts, func(o lookout) bool { return o.Lookout == l })
	if i < 0 {
		return
	}
	r.looking -= r.lookouts[i].often
	r.lookouts = slices.Delete(r.lookouts, i, i+1)
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
	// manyPlaces take as long as a turn: they are looked at in every manyTurns only, and the more
	// there are, the less often without a turn.
	manyPlaces = 32
	manyTurns  = 8
)

// look calls the lookouts once, or those that are called often.
func (r *Reactor) look(all bool) (found bool) {
	// One that is called may end its LookOut, and one behind it is then called next time.
	for i := 0; i < len(r.lookouts); i++ {
		if all || r.lookouts[i].often > 0 {
			found = r.lookouts[i].Look(Progress{r}) || found
		}
	}
	if found {
		r.byLookout = true
		if !r.found.Load() {
			r.found.Store(true)
		}
	}
	return found
}

// lookInTurn is what a turn has of that. The background, whose turns may be far apart, leaves none
// out.
func (r *Reactor) lookInTurn() (found bool) {
	few := len(r.lookouts)+r.looking < manyPlaces
	return len(r.lookouts) > 0 && (few || r.lookAround || r.turns%manyTurns == 0) && r.look(true)
}

// lookOut calls the lookouts until there is something, or it is time for a turn, which it takes.
// It says whether there was anything.
func (r *Reactor) lookOut() (active bool) {
	rested := r.intake.Load() == nil && !r.pending() && r.broken == nil && !r.closed.Load()
	if rested && r.turnless < mostTurnless/(1+r.looking/manyPlaces) {
		r.turnless++
		looks := looksAround
		switch {
		case r.crowd.here:
			looks = looksInCrowd
		case r.byLookout:
			looks = looksAgain
		}
		for range max(looks/r.looking, 1) {
			switch {
			case r.look(false):
				return true
			case r.intake.Load() != nil:
				r.turnless = 0
				return r.step(0) > 0
			}
		}
		if r.crowd.here && r.byLookout {
			r.turnless += crowdedTurnless - 1
			return false
		}
	}
	r.turnless = 0
	return r.step(0) > 0
}
