package collective

import (
	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/comm"
)

// Stats are counts of what a rank has called on a communicator, by the kind of call:
// Calls[schedule.CollectiveBcast] are those of Bcast. Gatherv counts as Gather, and so on.
type Stats struct {
	Calls [schedule.CollectiveAlltoall + 1]CallStats
	// Neighbours is how many other ranks have their caches in memory of this host that is
	// mapped here, so that what is put there is copied, and does not go by the device: on shm, all
	// with which this rank has had something to do, but where the system forbids it.
	Neighbours uint64
	// CrossedBytes is what this rank has put there itself, of calls too large for the cache: on shm all
	// but what is of a Bcast or a Scatter to memory that is not mapped, as arenas are not. It is copied to
	// memory that is mapped, or written to the other process (process_vm_writev), if the system lets it.
	CrossedBytes uint64
}

// CallStats count calls. Those that have begun, and neither ended well nor failed, are
// under way.
type CallStats struct {
	Begun, Done, Failed uint64
	// InputBytes is what this rank has given to the calls that have ended well.
	InputBytes uint64
}

// StatsOf returns the counts of a communicator so far, also after Close. It waits until the
// communicator's reactor gets to it. Any goroutine may call it.
func StatsOf(c *comm.Comm) Stats {
	var s Stats
	if x := c.Extended(); x != nil {
		c.Reactor().Do(func(progress) { s = x.(*group).stats })
	}
	return s
}
