package fabric

import (
	"strings"

	"github.com/weft-go/weft/cgo"
)

// The address vector of tcp, and of ofi_rxm over anything, has a peer for each address
// beside its place in the table. When it does not take some of the addresses of one call,
// as one with port 0, it gives peers to as many as it took, counted from the first of the
// call, and not to those that it took: the last ones have none. To remove such an address,
// or to send to it, ends the process with SIGSEGV.

// havePeers says that addresses have peers.
func (v *AddressVector) havePeers() bool {
	_, layers, _ := strings.Cut(v.provider, ";")
	return core(v.provider) == "tcp" || core(v.provider) == "net" || strings.Contains(layers, "ofi_rxm")
}

// befriend gives peers to those of the addresses of one call that have none, of which
// libfabric took the number. What cannot have one is not inserted, with the code why: it
// cannot be removed either, and stays in the table.
func (v *AddressVector) befriend(places []uint64, codes []int32, taken int) {
	if v.havePeers() && taken >= 0 && taken < len(places) {
		befriend(places, codes, taken, func(place uint64) cgo.Code {
			if v.peers[Address(place)] > 0 {
				return 0 // from before
			}
			return v.insertAgain(place)
		})
	}
}

// befriend calls again once for each of the places from taken on that is not one of those
// before, which have peers.
func befriend(places []uint64, codes []int32, taken int, again func(place uint64) cgo.Code) {
	done := make(map[uint64]cgo.Code)
	for _, place := range places[:taken] {
		done[place] = 0
	}
	for i, place := range places {
		if i < taken || place == cgo.NoAddress {
			continue
		}
		code, known := done[place]
		if !known {
			code = again(place)
			done[place] = code
		}
		if code != 0 {
			places[i], codes[i] = cgo.NoAddress, int32(code)
		}
	}
}

// insertAgain inserts an address once more, which gives it a peer, and takes that back.
func (v *AddressVector) insertAgain(place uint64) cgo.Code {
	var address [256]byte
	n, code := v.raw.Lookup(place, address[:])
	if code != 0 {
		return code
	}
	if _, code = v.raw.Insert(address[:min(n, len(address))]); code != 0 {
		return code
	}
	// To remove it would end the connection that the peer itself may have made. It stays in
	// the table, then, after it has been removed.
	if !cleansUp {
		// If that fails, it is in the table once too often, and can be used.
		_ = v.raw.RemoveMany([]uint64{place})
	}
	return 0
}
