//go:build linux

package fabric

import (
	"time"

	"golang.org/x/sys/unix"
)

// arrivals are the sets of epoll that an endpoint of ofi_rxm over tcp (1.17) has its
// connections in. A message that is being fetched, and a read, end twice if the endpoint is closed
// before the connection (readsEndTwice).
type arrivals map[int]struct{}

// arrivalsIn finds the sets of the endpoint, which come into those of its queues when open
// enables it.
func arrivalsIn(e *Endpoint, queues []*CompletionQueue, open func()) arrivals {
	if LibraryVersion().Major > 1 || !fetchesOverConnections(e.provider) {
		open()
		return nil
	}
	before := setsIn(queues)
	open()
	all := setsIn(queues)
	for set := range before {
		delete(all, set)
	}
	return all
}

func setsIn(queues []*CompletionQueue) arrivals {
	all := make(arrivals)
	for _, q := range queues {
		if q == nil || q.waitFD < 0 {
			continue
		}
		for fd := range members(q.waitFD) {
			if isSet(fd) {
				all[fd] = struct{}{}
			}
		}
	}
	return all
}

// endArrivals has nothing come in any more at an endpoint that is to be closed. What the
// kernel has still goes out.
func (e *Endpoint) endArrivals() {
	if len(e.arrivals) == 0 || e.severed || !e.mayBeFetching() && !e.isReading() {
		return
	}
	for end := time.Now().Add(patienceWithThread); e.arrivals.end() && time.Now().Before(end); {
		e.gather(true)
	}
}

// end ends what comes in of all connections, and says whether libfabric has some still.
func (a arrivals) end() (some bool) {
	for set := range a {
		for fd, m := range members(set) {
			switch peer, _ := unix.Getpeername(fd); peer.(type) {
			case *unix.SockaddrInet4, *unix.SockaddrInet6:
				// No thread but ours closes it.
				if inodeOf(fd) == m.inode {
					some = unix.Shutdown(fd, unix.SHUT_RD) == nil || some
				}
			}
		}
	}
	return some
}
