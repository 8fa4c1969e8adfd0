package collective

import (
	"encoding/binary"

	"github.com/weft-go/weft/collective/schedule"
)

// In a large call, who puts to a rank whose cache is mapped does the work, and leaves the word in
// the ring behind the cache: it copies to the window of the call, if that is mapped, and otherwise, for
// memory that is the program's, writes to the other process, where the system lets it. shm would have
// the other one copy, when it looks: the root of a Gather all that comes, one block after the other, and
// meanwhile who has something else for it would spin for a lock, as would the others for theirs. And
// it is the kernel that copies then, page by page: 1 MiB of
// Go's memory takes as long as three or four copies of it.
// What follows from a call is the same as with the device: see letgo.go.

// crossing says whether the ranks that put write to the other process. Where one has something for all
// others, these had better copy it themselves, at the same time.
func crossing(kind schedule.Collective) bool {
	return kind != schedule.CollectiveBcast && kind != schedule.CollectiveScatter
}

// cross puts to a rank without the device, if that can be.
func (g *group) cross(p progress, c *call, s *schedule.Step, src []byte, to place) (crossed bool, err error) {
	m := &g.members[s.Peer]
	if m.near == nil {
		return false, nil
	}
	mapped := to.window.at(to.Address, len(src))
	if mapped == nil && (!crossing(c.shape.Collective) || m.near.process == nil) {
		return false, nil
	}
	worded := g.fitsWord(s)
	var entry []byte
	if worded {
		if entry = m.near.entry(); entry == nil {
			return false, nil
		}
	}
	if mapped != nil {
		c.copy(mapped, src)
	} else if err := m.near.process.write(to.Address, src); err != nil {
		// The device says what is wrong, or can do better: nobody was told of anything yet.
		_ = m.near.detach()
		return false, nil
	}
	g.stats.CrossedBytes += uint64(len(src))
	if !worded {
		return true, g.notifyArrived(p, c.number, s)
	}
	binary.LittleEndian.PutUint64(entry[8:], 0) // no data
	m.near.stamp(entry, wordOf(c.number, g.rank, s.Number, g.released))
	g.worded(s)
	return true, nil
}

// mostCopied is how long a result is at most for others to copy it to a window, if it is one of an Allreduce,
// of which the parts that a rank has combined itself are better where the caller wants them, or if the kernel is quick.
const mostCopied = 2 << 20

// copiesTo says whether others had better copy a result to a window, from where it is copied to the
// caller, than write to the process. These are two copies and not one, in twice the memory; but short ones
// stay in the caches, and of long ones the kernel, which copies page by page, may take longer for its one.
func (g *group) copiesTo(c *call, output []byte) bool {
	most := largestWindow
	if c.shape.Collective == schedule.CollectiveAllreduce {
		most = mostCopied
	}
	if len(output) > most || !g.windows.shares(len(output)) {
		return false
	}
	written := true
	for _, source := range c.planned.sources {
		near := g.members[source].near
		if near == nil {
			return false
		}
		written = written && near.process != nil
	}
	if len(output) <= mostCopied || !written {
		return true
	}
	if piece := c.shape.Chunk * c.shape.element; !crossing(c.shape.Collective) && 0 < piece && piece < pastPiece {
		// The device would have each confirmed before the next.
		return true
	}
	return !g.quickKernel()
}

// cacheAddress is where the cache is in this process, if that is how exposures of this device name it, or 0.
func (g *group) cacheAddress() uint64 {
	if at := uint64(address(g.cache.memory)); g.cache.at(0).Address == at {
		return at
	}
	return 0
}

// attachTo finds the process of a rank whose cache is at an address there.
func (o *outbox) attachTo(process, address uint64, header int, cookie uint64) {
	if address == 0 {
		return
	}
	// Where the system forbids it, it does so for good.
	o.process, _ = attach(process, address+uint64(header), cookie)
}

func (o *outbox) detach() error {
	a := o.process
	if a == nil {
		return nil
	}
	o.process = nil
	return a.close()
}
