package fabric

import (
	"runtime"
	"time"
)

// pace lets Go's scheduler in every few milliseconds. A goroutine that takes
// turns for 10 ms without a break is a hog to the runtime: its monitor takes
// the P away in the middle of a turn, and then looks after it every 20 us for
// several milliseconds, on the core that this side or its peer needs.
type pace struct {
	left, stride int
	last         time.Duration
}

const (
	breakEvery    = 3 * time.Millisecond
	longestStride = 1 << 16
)

var paceStart = time.Now()

// step counts a turn. The clock is read once in a stride of turns, which is to
// take about breakEvery.
func (p *pace) step() {
	if p.left--; p.left < 0 {
		p.rest()
	}
}

func (p *pace) rest() {
	now := time.Since(paceStart)
	took := now - p.last
	if took >= breakEvery/2 {
		runtime.Gosched()
		now = time.Since(paceStart)
	}
	p.last = now
	switch {
	case took < breakEvery/2:
		p.stride = min(2*p.stride+1, longestStride)
	case took > breakEvery:
		p.stride = int(time.Duration(p.stride) * breakEvery / took)
	}
	p.left = p.stride
}
