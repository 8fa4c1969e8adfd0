package efa

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weft-go/weft/fabric"
)

// arenaExposures are the arenas of the program that peers can use, each as a whole. They
// stay registered when nobody uses them, as long as there are not too many. It belongs to
// the progress role.
type arenaExposures struct {
	known  map[*fabric.Arena]*arenaExposure
	clock  uint64 // counts loans
	closed bool
}

// mostArenas is how many arenas a reactor keeps registered.
const mostArenas = 64

// arenaExposure is that of an arena, or nothing if that cannot be registered.
type arenaExposure struct {
	*Exposure
	arena  *fabric.Arena
	users  atomic.Int32
	used   uint64 // when it was lent last
	forget func()
}

// Borrow exposes the [fabric.Arena] that all of buf is part of, until Return. The arena is
// registered as a whole when it is borrowed first, and stays so until it is closed, which
// is refused with fabric.ErrBusy while it is lent, or until many others were borrowed.
//
// The exposure is nil where buf is not part of one arena, or where so many are lent that
// there is no room; likewise of an arena that the device did not register, which is
// logged, and not tried again.
func (p Progress) Borrow(buf []byte) *Exposure {
	arena := fabric.ArenaOf(buf)
	if arena == nil {
		return nil
	}
	r := p.reactor
	a := &r.arenas
	e := a.known[arena]
	if e == nil {
		if e = a.add(p, arena); e == nil {
			return nil
		}
	}
	a.clock++
	e.used = a.clock
	if e.Exposure != nil {
		e.users.Add(1)
	}
	return e.Exposure
}

// Return ends a loan of Borrow. Any goroutine may call it, also after Close of the reactor.
func (e *Exposure) Return() { e.lent.users.Add(-1) }

// RemoteOf is what to tell peers of a part of what is exposed.
func (e *Exposure) RemoteOf(part []byte) (fabric.Remote, error) { return e.registration.RemoteOf(part) }

// add registers an arena, and gives up the one whose last loan is the longest ago if there
// are many. It is nil if the arena or the reactor is closed, or there is no room.
func (a *arenaExposures) add(p Progress, arena *fabric.Arena) *arenaExposure {
	if a.closed || len(a.known) >= mostArenas && !a.evict() {
		return nil
	}
	e := &arenaExposure{arena: arena}
	var err error
	// Any goroutine closes an arena, and only the role may use the device.
	release := func() (err error) {
		p.reactor.do(func() { err = a.release(e) })
		return err
	}
	if e.forget, err = arena.BeforeClose(release); err != nil {
		return nil
	}
	memory := arena.Bytes()
	if e.Exposure, err = p.Expose(memory); err != nil {
		p.reactor.logUnregistered(len(memory), err)
	} else {
		e.lent = e
	}
	if a.known == nil {
		a.known = make(map[*fabric.Arena]*arenaExposure)
	}
	a.known[arena] = e
	return e
}

// evict drops the arena whose last loan is the longest ago, if there is one that is not
// lent.
func (a *arenaExposures) evict() bool {
	var oldest *arenaExposure
	for _, e := range a.known {
		if e.users.Load() == 0 && (oldest == nil || e.used < oldest.used) {
			oldest = e
		}
	}
	return oldest != nil && a.drop(oldest) == nil
}

// release is for an arena that is to be closed.
func (a *arenaExposures) release(e *arenaExposure) error {
	if n := e.users.Load(); n > 0 {
		return fmt.Errorf("%w: the arena is in use by %d calls, or peers may still write to it for calls that have failed", fabric.ErrBusy, n)
	}
	if a.known[e.arena] != e {
		return nil
	}
	return a.drop(e)
}

func (a *arenaExposures) drop(e *arenaExposure) error {
	if e.Exposure != nil {
		if err := e.end(); err != nil {
			return err
		}
	}
	delete(a.known, e.arena)
	e.forget()
	return nil
}

// close ends all, when the device is closed.
func (a *arenaExposures) close() error {
	a.closed = true
	var err error
	for _, e := range a.known {
		err = errors.Join(err, a.drop(e))
	}
	return err
}
