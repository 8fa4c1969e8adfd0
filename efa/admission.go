package efa

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"
)

// admission bounds the handshakes that a listener has under way, the
// connections that wait for AcceptConn included: each has one of its places.
//
// A peer that connects and says nothing costs nothing to be, so such peers come
// in any number. They do not keep others out: when all places are taken, the
// one that has been silent for the longest time has to leave for a new one; if
// none is silent, then the one that has been saying who it is for the longest
// time. Each has a moment, though, and those who have said who they are stay.
type admission struct {
	places chan struct{}
	moved  chan struct{} // rings when a visitor has begun to speak
	moment time.Duration

	mu       sync.Mutex
	silent   list.List // of *visitor, the first one is there for the longest time
	speaking list.List // likewise
}

// visitor is one who may have to leave again.
type visitor struct {
	tcp     net.Conn
	since   time.Time // it is silent, or is speaking
	drop    context.CancelCauseFunc
	in      *list.List // of admission, or nil
	element *list.Element
}

// moment is more than a peer takes to say hello once it is connected, and short
// enough that a flood of silent ones goes by.
const moment = 100 * time.Millisecond

func newAdmission(places int) *admission {
	return &admission{places: make(chan struct{}, places), moved: make(chan struct{}, 1), moment: moment}
}

// enter waits for a place, or for the end of ctx, and says whether there is one.
func (a *admission) enter(ctx context.Context, v *visitor) bool {
	dropped := false
	for {
		select {
		case a.places <- struct{}{}:
			a.move(v, &a.silent)
			return true
		default:
		}
		moved := a.moved
		var later <-chan time.Time
		if !dropped {
			var wait time.Duration
			if dropped, wait = a.dropOne(); wait > 0 {
				later = time.After(wait)
			}
		}
		if dropped {
			moved = nil // one is enough
		}
		select {
		case a.places <- struct{}{}:
			a.move(v, &a.silent)
			return true
		case <-moved:
		case <-later:
		case <-ctx.Done():
			return false
		}
	}
}

// leave gives a place back.
func (a *admission) leave() { <-a.places }

// spoke notes that the visitor has said something.
func (a *admission) spoke(v *visitor) {
	a.move(v, &a.speaking)
	select {
	case a.moved <- struct{}{}:
	default:
	}
}

// stays notes that the visitor has said who it is, or is gone.
func (a *admission) stays(v *visitor) { a.move(v, nil) }

func (a *admission) move(v *visitor, to *list.List) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v.in != nil {
		v.in.Remove(v.element)
	} else if v.element != nil {
		return // dropped, or stays
	}
	v.since = time.Now()
	if v.in = to; to != nil {
		v.element = to.PushBack(v)
	}
}

// mostLooks is how many of the silent ones are asked whether something of
// theirs just has not been read yet.
const mostLooks = 16

// dropOne makes a visitor leave, if there is one who may have to. wait is how
// long it takes until there may be one, 0 if that is not known.
func (a *admission) dropOne() (dropped bool, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	victim := a.silent.Front()
	for looks := 0; victim != nil && unread(victim.Value.(*visitor).tcp); victim = victim.Next() {
		if looks++; looks == mostLooks {
			return false, 0 // they are about to speak
		}
	}
	switch {
	case victim != nil:
	case a.silent.Len() > 0:
		return false, 0 // likewise
	default:
		if victim = a.speaking.Front(); victim == nil {
			return false, 0
		}
	}
	v := victim.Value.(*visitor)
	if wait := a.moment - time.Since(v.since); wait > 0 {
		return false, wait
	}
	v.in.Remove(victim)
	v.in = nil
	v.drop(ErrTooManyHandshakes)
	return true, 0
}
