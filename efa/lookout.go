package efa

import "slices"

// Lookout has something of its own to look at beside the device, such as memory to which
// processes of this host write. Look takes in what is there, and says whether anything was. It
// is called in the progress role, where it must not block, by whoever takes a turn.
type Lookout interface {
	Look(p Progress) (found bool)
}

// lookout is one that is called; often, where what somebody waits for may come there, and not by
// the device.
type lookout struct {
	Lookout
	often bool
}

// LookOut has the reactor call l in each turn, until Rest. If often, who waits calls it again and
// again, and reads the queue of the device less often. Called again, it changes that.
func (p Progress) LookOut(l Lookout, often bool) {
	p.Rest(l)
	p.reactor.lookouts = append(p.reactor.lookouts, lookout{l, often})
	if often {
		p.reactor.looking++
	}
}

// Rest ends LookOut.
func (p Progress) Rest(l Lookout) {
	r := p.reactor
	i := slices.IndexFunc(r.lookouts, func(o lookout) bool { return o.Lookout == l })
	if i < 0 {
		return
	}
	if r.lookouts[i].often {
		r.looking--
	}
	r.lookouts = slices.Delete(r.lookouts, i, i+1)
}

// SameHost says that all peers are processes of this host, which the device does not notify:
// what they write to memory that they share with this one is seen as soon as what the device
// has.
func (r *Reactor) SameHost() bool { return r.attributes.SameHostOnly && !r.attributes.Notifies }

const (
	// Between two turns lookouts are called so often: where the last that came was theirs, and
	// where it was the device's.
	looksAgain  = 128
	looksAround = 8
	// Where others want the core, it is looksInCrowd before they have it, and turns are taken
	// before each time, or where the last that came was the lookouts', before every
	// mostTurnless.
	looksInCrowd = 2
	mostTurnless = 8
)

// look calls the lookouts once.
func (r *Reactor) look() (found bool) {
	// One that is called may end its LookOut, and one behind it is then called next time.
	for i := 0; i < len(r.lookouts); i++ {
		found = r.lookouts[i].Look(Progress{r}) || found
	}
	if found {
		r.byLookout = true
		if !r.found.Load() {
			r.found.Store(true)
		}
	}
	return found
}

// lookOut calls the lookouts until there is something, or it is time for a turn, which it takes.
// It says whether there was anything.
func (r *Reactor) lookOut() (active bool) {
	if r.turnless < mostTurnless && r.broken == nil && r.intake.Load() == nil && !r.pending() {
		r.turnless++
		looks := looksAround
		switch {
		case r.crowd.here:
			looks = looksInCrowd
		case r.byLookout:
			looks = looksAgain
		}
		for range looks {
			if r.look() {
				return true
			}
		}
		if r.crowd.here && r.byLookout {
			return false
		}
	}
	r.turnless = 0
	return r.step(0) > 0
}
