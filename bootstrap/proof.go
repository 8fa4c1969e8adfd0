package bootstrap

import "github.com/weft-go/weft/internal/proof"

// With a key, each side proves that it has it before the other says anything that
// matters: the rank first, so that the server tells strangers nothing. What is sent
// after the handshake has a proof behind each frame.
const (
	rankLabel   = "weft job rank has the key"
	serverLabel = "weft job server has the key"
)

var protocol = proof.Protocol{
	Session: "weft job session",
	First:   "weft job frames of the rank",
	Second:  "weft job frames of the server",

	Unauthorized: ErrUnauthorized,
}

// newSession makes the session of a handshake that began with these frames, and so
// with the nonces of both.
func newSession(key, hello, challenge []byte) *proof.Session {
	return protocol.NewSession(key, hello, challenge)
}
