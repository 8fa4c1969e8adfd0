package efa

import "strings"

// rxmPiece is the longest message that ofi_rxm copies, by default, and does not have
// the receiver fetch.
const rxmPiece = 16 << 10

// piecesAtOnce is how many pieces of one message are on their way at a time, where
// they keep their order: enough to fill the connection, few enough to leave room for
// the messages of others.
const piecesAtOnce = 16

// piecesAtOnce is that number for a connection, whose rails have as many each.
func (c *Conn) piecesAtOnce() int { return piecesAtOnce * (1 + len(c.rails)) }

// tiniestPiece is the shortest piece in bytes that a peer can ask for: each is work
// for this side, which then has to be ended if the peer goes away.
const tiniestPiece = 256

// piece is the longest payload message in bytes that this side agrees to.
//
// What ofi_rxm has the receiver fetch ends the receiver's process if the sender has
// gone away, and does not complete if the receiver has; in libfabric 1.17 it leaves memory
// behind that is never given back. In pieces that are copied nothing of that happens.
func (r *Reactor) piece() uint64 {
	if strings.HasSuffix(r.attributes.Provider, ";ofi_rxm") {
		return min(rxmPiece, r.attributes.MaxMessage)
	}
	return r.attributes.MaxMessage
}
