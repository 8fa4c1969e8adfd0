package fabric

import (
	"maps"
	"slices"
	"strconv"

	"github.com/weft-go/weft/cgo"
)

// A vector of shm counts how often a peer was inserted, and does not look at that when it removes one: the
// peer is gone from its table the first time, though the program still has it, and is taken off the number
// of peers each time. The next insertion may then divide by it as it is zero: SIGFPE. So libfabric gets each
// peer once, and weft counts.

// mostShmPeers is how many peers a vector of shm has at most.
const mostShmPeers = 256

// insertsOnce says that libfabric gets a peer only when it is inserted for the first time, and removed for
// the last.
func (v *AddressVector) insertsOnce() bool { return core(v.provider) == "shm" && !v.shared }

// insertedAgain counts a peer that the vector has already.
func (v *AddressVector) insertedAgain(address []byte) (Address, bool) {
	peer, ok := v.named[plainName(address)]
	if ok {
		v.peers[peer]++
	}
	return peer, ok
}

// name notes how a peer is called that the vector has from now on.
func (v *AddressVector) name(peer Address, address []byte) {
	if v.named == nil {
		v.named = make(map[string]Address)
	}
	v.named[plainName(address)] = peer
}

// lastRemovals are those of the peers that are removed as often as they have been inserted. Their names
// are forgotten.
func (v *AddressVector) lastRemovals(times map[Address]int) []uint64 {
	var last []uint64
	for peer, n := range times {
		if n >= v.peers[peer] {
			last = append(last, uint64(peer))
			maps.DeleteFunc(v.named, func(_ string, p Address) bool { return p == peer })
		}
	}
	slices.Sort(last)
	return last
}

// insertError says why libfabric has not taken one more peer.
func (v *AddressVector) insertError(code cgo.Code) error {
	if !v.insertsOnce() || len(v.named)+len(v.kept.byName) < mostShmPeers {
		return fail("fi_av_insert", v.provider, int(code))
	}
	detail := strconv.Itoa(mostShmPeers) + " peers are the most that an address vector has on shm"
	if n := len(v.kept.byName); n > 0 {
		detail += "; " + strconv.Itoa(n) + " of these were removed, and are still there"
	}
	return &Error{Op: "fi_av_insert", Provider: v.provider, Errno: Errno(code), Detail: detail}
}
