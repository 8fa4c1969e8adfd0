package fabric

import (
	"math"
	"slices"
)

// Providers look the peer of an operation up unchecked, in tables or beyond their ends.
// So weft looks first, in a set that takes a load and a shift.

// denseAddresses bounds the set, for which an address is the number of a bit. Those of
// tables count from 0; others are looked up in the map of all peers.
const denseAddresses = 1 << 20

// peerBits has a bit for each peer of a vector.
type peerBits []uint64

func (b peerBits) has(peer Address) bool {
	word := peer / 64
	return word < Address(len(b)) && b[word]>>(peer%64)&1 != 0
}

func (b *peerBits) add(peer Address) {
	if peer >= denseAddresses {
		return
	}
	for peer/64 >= Address(len(*b)) {
		*b = append(*b, 0)
	}
	(*b)[peer/64] |= 1 << (peer % 64)
}

func (b peerBits) remove(peer Address) {
	if b.has(peer) {
		b[peer/64] &^= 1 << (peer % 64)
	}
}

// has says whether a peer has been inserted and not removed, here or by another process
// that shares the vector.
func (v *AddressVector) has(peer Address) bool {
	return v.bits.has(peer) || v.peers[peer] > 0 || v.shared && v.ofOthers(peer)
}

// ofOthers asks libfabric for a peer that another process may have inserted, each time,
// for that may remove it. sockets looks at the low bits of an address only, where
// fi_av_remove takes all of them for a place in its table, and has zeros where nobody was
// inserted.
func (v *AddressVector) ofOthers(peer Address) bool {
	if peer > math.MaxInt32 {
		return false
	}
	var buf [256]byte
	n, code := v.raw.Lookup(uint64(peer), buf[:])
	return code == 0 && n <= len(buf) && v.wrong(buf[:n]) == ""
}

// reaches says whether the provider can look the peer of an operation up.
func (e *Endpoint) reaches(op *Op) bool {
	if of := e.connection.of; of != nil {
		e = of
	}
	if op.Flags&ToMulticast != 0 {
		// It is the address of what libfabric has of the group.
		return slices.Contains(e.multicast, op.Peer)
	}
	v := e.vector
	if v == nil || v.bits.has(op.Peer) {
		return true
	}
	switch {
	case kinds[op.Kind].receive && (op.Peer == AddressAny || !e.directs(op.Kind)):
		return true
	case v.has(op.Peer):
		return true
	case v.receiveBits > 0:
		return v.has(op.Peer << v.receiveBits >> v.receiveBits)
	}
	return v.grouped && v.has(op.Peer&math.MaxUint32)
}

// directs says whether receives of a kind look at the peer that they name.
func (e *Endpoint) directs(k OpKind) bool {
	by := DirectedReceive
	if k == OpTaggedReceive {
		by |= TaggedDirectedReceive
	}
	return e.Info().Capabilities()&by != 0
}
