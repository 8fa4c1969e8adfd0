package efa

import (
	"log/slog"
	"sync"
	"time"
)

// throttle keeps strangers from filling the log: of each second, the first
// warnings are logged, and then how many were not.
type throttle struct {
	mu     sync.Mutex
	second time.Time // when it began
	count  int       // of it
	left   int       // out, since one was logged last
}

// mostWarnings is how many of a second are logged.
const mostWarnings = 10

func (t *throttle) log(log *slog.Logger, text string, arguments ...any) {
	if left, ok := t.admits(time.Now()); ok {
		if left > 0 {
			arguments = append(arguments, "left_out", left)
		}
		log.Warn(text, arguments...)
	}
}

// admits says whether there may be a warning now, and how many there were none
// for since the last one.
func (t *throttle) admits(now time.Time) (left int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.second) >= time.Second {
		t.second, t.count = now, 0
	}
	if t.count++; t.count > mostWarnings {
		t.left++
		return 0, false
	}
	left, t.left = t.left, 0
	return left, true
}
