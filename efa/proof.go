package efa

import "github.com/weft-go/weft/internal/proof"

// With a key, the handshake has two more frames, and proofs:
//
//	dialer             listener
//	hello         ->            with a nonce
//	              <-   challenge   its nonce
//	proof         ->            of the key
//	              <-   offer    with a proof over the terms of the listener
//	answer        ->            with a proof over the terms of both
//	              <-   ready    with a proof over the terms of both
//
// The listener tells nothing of itself, and gives no place away, before the
// dialer has proved that it has the key; the dialer opens no device for a
// listener that has not. Finish and received carry proofs, too.
const (
	keyLabel           = "weft dialer has the key"
	offerLabel         = "weft terms of the listener"
	answerLabel        = "weft terms of the dialer"
	listenerRailsLabel = "weft rails of the listener"
	dialerRailsLabel   = "weft rails of the dialer"
	readyLabel         = "weft listener is ready"
)

var protocol = proof.Protocol{
	Session: "weft session",
	First:   "weft frames of the dialer",
	Second:  "weft frames of the listener",
	Frame:   "weft frame",

	Unauthorized: ErrUnauthorized,
}

// newSession makes the session of a handshake that began with these frames.
// tls is unique to the TLS session beneath, or nil.
func newSession(key, hello, challenge, tls []byte) *proof.Session {
	return protocol.NewSession(key, hello, challenge, tls)
}
