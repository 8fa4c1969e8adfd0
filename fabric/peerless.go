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
// libfabric took the number: it inserts each once more, and takes that back.
func (v *AddressVector) befriend(places []uint64, taken int) cgo.Code {
	if !v.havePeers() || taken < 0 || taken >= len(places) {
		return 0
	}
	for _, place := range places[taken:] {
		if place == cgo.NoAddress {
			continue
		}
		var address [256]byte
		n, code := v.raw.Lookup(place, address[:])
		if code != 0 {
			return code
		}
		if _, code = v.raw.Insert(address[:min(n, len(address))]); code != 0 {
			return code
		}
		if code = v.raw.RemoveMany([]uint64{place}); code != 0 {
			return code
		}
	}
	return 0
}
