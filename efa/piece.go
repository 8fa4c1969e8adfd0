package efa

import "strings"

// rxmPiece is the longest message that ofi_rxm copies, by default, and does not have
// the receiver fetch.
const rxmPiece = 16 << 10

// piecesAtOnce is how many pieces of one message are on their way at a time, where
// they keep their order: enough to fill the connection, few enough to leave room for
// the messages of others.
const piecesAtOnce = 16

// tiniestPiece is the shortest piece in bytes that a peer can ask for: each is work
// for this side, which then has to be ended if the peer goes away.
const tiniestPiece = 256

// piece is the longest payload message in bytes that this side agrees to.
//
// What ofi_rxm of libfabric 1.17 has the receiver fetch leaves memory behind that is
// never given back, does not complete if the receiver goes away, and then keeps the
// domain from being closed. In pieces that are copied nothing of that happens.
func (r *Reactor) piece() uint64 {
	if strings.HasSuffix(r.attributes.Provider, ";ofi_rxm") {
		return min(rxmPiece, r.attributes.MaxMessage)
	}
	return r.attributes.MaxMessage
}
