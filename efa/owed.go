package efa

import (
	"sync/atomic"
	"time"
)

// owed counts what the reactor owes to those who do not wait for it, and so do not
// drive it either: callbacks, completions, results of Requests. While there is any,
// the background drives as a caller that waits would. It belongs to the role, but
// for count.
type owed struct {
	count atomic.Int32
	// fresh: something was added since the background last spun.
	fresh bool
	// paid: something was taken since the background began to.
	paid atomic.Bool
	// since is when it began to wait for that.
	since time.Time
	// patience is that of the most patient task since there is any; tasks counts them.
	patience time.Duration
	tasks    int
}

func (o *owed) add() {
	o.count.Add(1)
	o.fresh = true
}

func (o *owed) take() {
	o.count.Add(-1)
	o.paid.Store(true)
}

// oweTask counts a task for which much is moved: should its caller give up driving, the
// background does so as that would have.
func (r *Reactor) oweTask(k *call) {
	if k.patience > 0 && !k.owed {
		k.owed = true
		r.owed.patience = max(r.owed.patience, k.patience)
		r.owed.tasks++
		r.owed.add()
	}
}

// payTask is the end of what oweTask counts.
func (r *Reactor) payTask(k *call) {
	if k.owed {
		k.owed, k.patience = false, 0
		if r.owed.tasks--; r.owed.tasks == 0 {
			r.owed.patience = 0
		}
		r.owed.take()
	}
}

// owe counts a write of which somebody is to hear.
func (r *Reactor) owe(w *write) {
	if !w.owed {
		w.owed = true
		r.owed.add()
	}
}

// pay notes that somebody hears of a write now, if that was owed.
func (r *Reactor) pay(w *write) {
	if w.owed {
		w.owed = false
		r.owed.take()
	}
}

// awaited says that somebody waits who does not drive.
func (r *Reactor) awaited() bool { return r.parked.Load() > 0 || r.owed.count.Load() > 0 }

// drivePaying is what the background does as leader: a turn, and where something is
// owed, turns for as long as a caller would take them. It says whether anything
// happened, and whether somebody has heard of it, who may want to lead.
func (r *Reactor) drivePaying() (active, paid bool) {
	o := &r.owed
	if o.fresh || o.since.IsZero() {
		o.since = time.Now()
	}
	o.paid.Store(false)
	active = r.step(0) > 0
	if (active || o.fresh) && o.count.Load() > 0 && !o.paid.Load() && r.attributes.Spin {
		r.spin(&o.paid, nil, &o.patience)
	}
	o.fresh = false
	if paid = o.paid.Load(); paid {
		r.waited(o.since)
		o.since = time.Time{}
	}
	return active, paid
}
