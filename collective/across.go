package collective

import (
	"encoding/binary"

	"github.com/weft-go/weft/collective/schedule"
	"github.com/weft-go/weft/fabric"
)

// In a large call, who puts to a rank whose cache is mapped writes to that process itself, where
// the system lets it, and leaves the word in the ring behind the cache. shm would have the other
// one copy, when it looks: the root of a Gather all that comes, one block after the other, and
// meanwhile who has something else for it would spin for a lock, as would the others for theirs.
// So 16 MiB on four ranks took half as long again, and a Reduce on two ranks twice as long.
// What follows from a call is the same as with the device: see letgo.go.

// crossing says whether the ranks that put write to the other process. Where one has something for all
// others, these had better copy it themselves, at the same time.
func crossing(kind schedule.Collective) bool {
	return kind != schedule.CollectiveBcast && kind != schedule.CollectiveScatter
}

// cross puts to a rank by writing to its process, if that can be.
func (g *group) cross(c *call, s *schedule.Step, src []byte, to fabric.Remote) bool {
	m := &g.members[s.Peer]
	if !crossing(c.shape.Collective) || !g.leaves(m, s) || m.near.process == nil {
		return false
	}
	entry := m.near.entry()
	if entry == nil {
		return false
	}
	if err := m.near.process.write(to.Address, src); err != nil {
		// The device says what is wrong, or can do better: nobody was told of anything yet.
		_ = m.near.detach()
		return false
	}
	binary.LittleEndian.PutUint64(entry[8:], 0) // no data
	m.near.stamp(entry, wordOf(c.number, g.rank, s.Number, g.released))
	g.worded(s)
	g.stats.CrossedBytes += uint64(len(src))
	return true
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
