package efa

import (
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/fabric"
)

// The background waits for the first device. So that its wait ends for the rails too,
// each has a goroutine that waits for it meanwhile, and then wakes the first. When the
// background goes on it has them all back.
//
//	background   begin ──> device.Wait ────────────────> recall ──> back
//	a rail's       └────────> rail.Wait ──> device.Wake ──────────────┘

// railWaiting is that goroutine.
type railWaiting struct {
	device fabric.Device
	begin  chan time.Duration
	back   chan struct{}
	quit   chan struct{}
	ended  chan struct{}
	waits  atomic.Bool
}

// start begins to wait for a rail on behalf of the first device. waiting says that the
// background waits for that, and has not been told of anything yet.
func (w *railWaiting) start(rail, first fabric.Device, waiting *atomic.Bool, labels labels) {
	w.device = rail
	w.begin, w.back = make(chan time.Duration, 1), make(chan struct{}, 1)
	w.quit, w.ended = make(chan struct{}), make(chan struct{})
	quit := w.quit
	go func() {
		wear(labels.reactor)
		defer close(w.ended)
		for {
			var timeout time.Duration
			select {
			case timeout = <-w.begin:
			case <-quit:
				return
			}
			rail.Wait(timeout)
			w.waits.Store(false)
			if waiting.Swap(false) {
				first.Wake()
			}
			w.back <- struct{}{}
		}
	}()
}

// stop ends the goroutine, if it was started. The device may be closed after that.
func (w *railWaiting) stop() {
	if w.quit == nil {
		return
	}
	close(w.quit)
	w.quit = nil
	w.device.Wake()
	<-w.ended
}

// arm prepares a wait for the first device, and for each rail on which something may
// come.
func (r *Reactor) arm() bool {
	armed := r.device.Arm()
	r.waitings = r.waitings[:0]
	if !r.attributes.Notifies {
		// The first naps, and after each nap all have a turn.
		return armed
	}
	for _, l := range r.rails {
		if l.broken != nil || !l.used {
			continue
		}
		r.stats.Crossings++
		armed = l.device.Arm() && armed
		r.waitings = append(r.waitings, &l.waiting)
	}
	return armed
}

// wait blocks until there may be something on any of the devices that were armed. It
// is the background's, without the role.
func (r *Reactor) wait(timeout time.Duration) {
	if r.lookouts.found.Swap(false) {
		// The device naps the longer, the longer it has had nothing.
		r.device.Wake()
	}
	r.waiting.Store(len(r.waitings) > 0)
	for _, w := range r.waitings {
		w.waits.Store(true)
		w.begin <- timeout
	}
	r.device.Wait(timeout)
	r.waiting.Store(false)
	for _, w := range r.waitings {
		if w.waits.Load() {
			w.device.Wake()
		}
	}
	for _, w := range r.waitings {
		select {
		case <-w.back:
		case <-w.ended:
		}
	}
}
