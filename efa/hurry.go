package efa

// A goroutine that hands over one short message after the other, and waits for none,
// would take a turn for each: the device takes every message at once, so that there
// would never be two to be gathered. So after a few, its messages are left to the
// background, which is awake meanwhile and posts in each turn what has come since the
// last. One that is alone pays for that with a wake-up, and then it is not tried again
// soon. It is worth it where a turn enters the kernel; on shm a turn costs less than what
// two threads of a side take from each other.

const (
	// hurryAfter is how many messages in a row show that there is a hurry, and calmFor
	// how many more are posted by who hands them over if there was none after all.
	hurryAfter = 16
	calmFor    = 1000
	// fewLeft is how many messages in a turn of the background are no hurry.
	fewLeft = 4
)

// hurry is about calls that hand a message over and do not wait. It belongs to the role.
type hurry struct {
	run  int // how many came in a row
	left int // of these, to the background since its last turn
}

// hurries says whether what a call has handed over is left to the background.
func (r *Reactor) hurries(k *call) bool {
	h := &r.hurry
	if k.callback == nil && k.completion == nil || !k.done.Load() || !r.attributes.Notifies || len(r.rails) > 0 {
		h.run = 0
		return false
	}
	if h.run++; h.run <= hurryAfter || !r.pending() {
		return false
	}
	h.left++
	return true
}

// takeLeft notes a turn of the background.
func (r *Reactor) takeLeft() {
	h := &r.hurry
	if h.left > 0 && h.left < fewLeft {
		h.run = -calmFor
	}
	h.left = 0
}
