package fabrictest

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Arm is as in [fabric.Device]. It says false also while messages are delayed
// or completions are late, for these need Turns to come.
func (d *Device) Arm() bool {
	d.enter(&inArm)
	defer d.leave()
	return !d.gone && !d.readable()
}

// Wait is as in [fabric.Device]. It returns at once where Arm would say false.
func (d *Device) Wait(timeout time.Duration) {
	mu := &d.network.mu
	mu.Lock()
	if d.waiting {
		mu.Unlock()
		panic(fmt.Sprintf("fabrictest: two goroutines are in Wait of device %s; it is for one at a time", d.address))
	}
	if d.woken || d.gone || timeout <= 0 || d.readable() {
		d.woken = false
		mu.Unlock()
		runtime.Gosched()
		return
	}
	d.waiting = true
	signalled := d.signalled
	mu.Unlock()

	if d.naps {
		timeout = min(timeout, time.Millisecond)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-signalled:
	case <-timer.C:
	}
	mu.Lock()
	d.waiting = false
	mu.Unlock()
}

// readable says that another Turn may bring something.
func (d *Device) readable() bool {
	return d.ready.len() > 0 || len(d.late) > 0 || slices.ContainsFunc(d.incoming, (*link).moving)
}

// Wake is as in [fabric.Device].
func (d *Device) Wake() {
	d.network.mu.Lock()
	defer d.network.mu.Unlock()
	if !d.waiting {
		d.woken = true
	}
	d.signal()
}

// signal ends the Wait under way.
func (d *Device) signal() {
	if d.waiting {
		close(d.signalled)
		d.signalled = make(chan struct{})
	}
}
