package fabric

import "time"

// sleeper is how a port waits.
type sleeper interface {
	wait(timeout time.Duration)
	wake()
	active()
	close()
}

// Naps grow by an eighth, so that one of two sides that wait for each other is
// late by an eighth of what the other was at most, and not the more the longer
// it goes on. A waking costs some 50 us of processor time, and naps of longNap 1 %
// and more of a core: beyond that they grow on, to what costs half of it, but only
// by so little that what comes is late by a hundredth of what it took to come.
const (
	shortestNap = 20 * time.Microsecond
	longNap     = 4 * time.Millisecond
	longestNap  = 10 * time.Millisecond
	// Go's timers are not finer than this while the process is idle.
	timerNap = time.Millisecond
)

func longer(nap time.Duration) time.Duration {
	if nap < longNap {
		return min(nap+nap/8, longNap)
	}
	return min(nap+nap/100, longestNap)
}
