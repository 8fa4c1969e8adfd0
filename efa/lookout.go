package efa

import "slices"

// Lookout has something of its own to look at beside the device, such as memory to which
// processes of this host write. Look takes in what is there, and says whether anything was. It
// is called in the progress role, where it must not block, by whoever takes a turn.
type Lookout interface {
	Look(p Progress) (found bool)
}

// LookOut has the reactor call l until Rest. Who waits meanwhile calls it again and again, and
// reads the queue of the device less often. l is not one for which that is so already.
func (p Progress) LookOut(l Lookout) { p.reactor.lookouts = append(p.reactor.lookouts, l) }

// Rest ends LookOut.
func (p Progress) Rest(l Lookout) {
	r := p.reactor
	if i := slices.Index(r.lookouts, l); i >= 0 {
		r.lookouts = slices.Delete(r.lookouts, i, i+1)
	}
}

// SameHost says that all peers are processes of this host, which the device does not notify:
// what they write to memory that they share with this one is seen as soon as what the device
// has.
func (r *Reactor) SameHost() bool { return r.attributes.SameHostOnly && !r.attributes.Notifies }

const (
	// Between two turns lookouts are called so often: where the last that came was theirs,
	// where it was the device's, and where others want the core.
	looksAgain   = 128
	looksAround  = 8
	looksInCrowd = 2
	// mostTurnless is how often in a row something was found, or others are given the core,
	// without a turn.
	mostTurnless = 8
)

// look calls the lookouts once.
func (r *Reactor) look() (found bool) {
	// One that is called may end its LookOut, and one behind it is then called next time.
	for i := 0; i < len(r.lookouts); i++ {
		found = r.lookouts[i].Look(Progress{r}) || found
	}
	if found {
		r.looks = looksAgain
		if !r.found.Load() {
			r.found.Store(true)
		}
	}
	return found
}

// lookOut calls the lookouts until there is something, or it is time for a turn, which it takes.
// It says whether there was anything.
func (r *Reactor) lookOut() (active bool) {
	if r.turnless < mostTurnless && r.intake.Load() == nil && !r.pending() {
		r.turnless++
		looks := r.looks
		if r.crowd.here {
			looks = looksInCrowd
		}
		for range looks {
			if r.look() {
				return true
			}
		}
		if r.crowd.here {
			return false
		}
	}
	r.turnless = 0
	return r.step(0) > 0
}
