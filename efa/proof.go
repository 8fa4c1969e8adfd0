package efa

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

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
//
// A proof is an HMAC-SHA256 over a label and what it vouches for, each part with
// its length in front. Its key is made from the key of the configuration, both
// nonces, and what is unique to the TLS session beneath, if there is one: a
// proof is worth nothing in another handshake. The labels keep one side's proof
// from being worth something as the other's.
const (
	nonceSize = 32
	proofSize = sha256.Size
	leastKey  = 16 // bytes

	sessionLabel        = "weft session"
	keyLabel            = "weft dialer has the key"
	offerLabel          = "weft terms of the listener"
	answerLabel         = "weft terms of the dialer"
	readyLabel          = "weft listener is ready"
	dialerFramesLabel   = "weft frames of the dialer"
	listenerFramesLabel = "weft frames of the listener"
	frameLabel          = "weft frame"
)

// session is what the two sides of a handshake know in common, and nobody who
// does not have the key. Where no key is asked for it is nil: then proofs are
// empty.
type session struct{ key []byte }

// newSession makes the session of a handshake that began with these frames.
// tls is unique to the TLS session, or nil.
func newSession(key, hello, challenge, tls []byte) *session {
	// HMAC itself takes a key with zeros behind it for the same key.
	hashed := sha256.Sum256(key)
	return &session{digest(hashed[:], sessionLabel, hello, challenge, tls)}
}

// digest is never the same for another list of parts.
func digest(key []byte, label string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	add := func(part []byte) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	add([]byte(label))
	for _, part := range parts {
		add(part)
	}
	return h.Sum(nil)
}

// seal puts a proof in front of body. It vouches for body and what was said
// before.
func (s *session) seal(label string, body []byte, before ...[]byte) []byte {
	if s == nil {
		return body
	}
	return append(digest(s.key, label, append([][]byte{body}, before...)...), body...)
}

// open checks the proof in front of a body, and takes it away.
func (s *session) open(label string, sealed []byte, before ...[]byte) ([]byte, error) {
	if s == nil {
		return sealed, nil
	}
	if len(sealed) < proofSize {
		return nil, errWrongProof
	}
	proof, body := sealed[:proofSize], sealed[proofSize:]
	if !hmac.Equal(proof, digest(s.key, label, append([][]byte{body}, before...)...)) {
		return nil, errWrongProof
	}
	return body, nil
}

// errWrongProof does not say what is wrong: it might help whoever tries.
var errWrongProof = fmt.Errorf("%w: the proof of the key is wrong", ErrUnauthorized)

// frames returns what vouches for the frames that each side sends after the
// handshake, nil without a key.
func (s *session) frames() (dialer, listener *frameProofs) {
	if s == nil {
		return nil, nil
	}
	return &frameProofs{key: digest(s.key, dialerFramesLabel)}, &frameProofs{key: digest(s.key, listenerFramesLabel)}
}

// frameProofs are those of one direction. Each frame counts, so that none can
// be left out, repeated or moved.
type frameProofs struct {
	key   []byte
	count uint64
}

// next is the proof of the next frame.
func (p *frameProofs) next(t frameType, body []byte) []byte {
	if p == nil {
		return nil
	}
	var head [9]byte
	binary.LittleEndian.PutUint64(head[:], p.count)
	head[8] = byte(t)
	p.count++
	return digest(p.key, frameLabel, head[:], body)
}

// check takes the proof behind the body of the next frame away.
func (p *frameProofs) check(t frameType, body []byte) ([]byte, error) {
	if p == nil {
		return body, nil
	}
	n := len(body) - proofSize
	if n < 0 || !hmac.Equal(body[n:], p.next(t, body[:n])) {
		return nil, errWrongProof
	}
	return body[:n], nil
}
