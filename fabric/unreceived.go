//go:build linux

package fabric

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-go/weft/cgo"
)

// unreceived is what a shared receive context of sockets has of messages.
type unreceived struct{ cgo.Unreceived }

// answered has nothing arrive there any more for an endpoint whose connections have ended, and
// says whether that is so. An answer that a connection did not take before is given to a socket
// that nobody reads, or the thread would keep it, and look into the endpoint, for good.
func (u unreceived) answered(e *Endpoint) bool {
	var pairs [][2]int
	defer func() {
		for _, p := range pairs {
			if p[0] >= 0 {
				_ = unix.Close(p[0])
			}
			_ = unix.Close(p[1])
		}
	}()
	another := func() bool {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err == nil {
			pairs = append(pairs, pair)
		}
		return err == nil
	}
	if !another() {
		return false
	}
	for end := time.Now().Add(patienceWithAnswer); ; time.Sleep(lookAgain) {
		nobody := &pairs[len(pairs)-1][0]
		arriving, taken := u.Arriving(e.raw, *nobody)
		if taken {
			*nobody = -1 // libfabric's
		}
		if !arriving {
			return true
		}
		if taken && !another() || time.Now().After(end) {
			return false
		}
		for _, p := range pairs {
			discard(p[1])
		}
	}
}
