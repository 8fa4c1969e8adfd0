// Package proof has what two sides prove with that they have the same key, in a
// handshake and for each frame behind it. Nothing is encrypted.
//
// A proof is an HMAC-SHA256 over a label and what it vouches for, each part with its
// length in front. Its key is made from the key and what was said first, with a nonce
// of each side in it: a proof is worth nothing in another handshake. The labels keep
// one side's proof from being worth something as the other's.
package proof

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const (
	// NonceSize is how long a nonce is.
	NonceSize = 32
	// Size is how long a proof is.
	Size = sha256.Size
	// LeastKey is how many bytes a key must have.
	LeastKey = 16
)

// NewNonce makes a nonce.
func NewNonce() (nonce [NonceSize]byte) {
	_, _ = rand.Read(nonce[:]) // never fails
	return nonce
}

// Protocol is what sets the proofs of one protocol apart from those of others, and the
// two sides from each other.
type Protocol struct {
	// Session is the label that the key of a session is made with.
	Session string
	// First and Second are the labels of the frames behind the handshake, of the side
	// that began it and of the other; Frame is that of each.
	First, Second, Frame string
	// Unauthorized is what an error about a wrong proof is.
	Unauthorized error
}

// wrong does not say what is wrong: it might help whoever tries.
func (p *Protocol) wrong() error {
	return fmt.Errorf("%w: the proof of the key is wrong", p.Unauthorized)
}

// Session is what the two sides of a handshake know in common, and nobody who does
// not have the key. Where no key is asked for it is nil: then proofs are empty.
type Session struct {
	protocol *Protocol
	key      []byte
}

// NewSession makes the session of a handshake in which this was said first.
func (p *Protocol) NewSession(key []byte, said ...[]byte) *Session {
	// HMAC itself takes a key with zeros behind it for the same key.
	hashed := sha256.Sum256(key)
	return &Session{p, digest(hashed[:], p.Session, said...)}
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

func (s *Session) prove(label string, body []byte, before [][]byte) []byte {
	return digest(s.key, label, append([][]byte{body}, before...)...)
}

// Seal puts a proof in front of body. It vouches for body and what was said
// before.
func (s *Session) Seal(label string, body []byte, before ...[]byte) []byte {
	if s == nil {
		return body
	}
	return append(s.prove(label, body, before), body...)
}

// Open checks the proof in front of a body, and takes it away. A wrong one is the
// protocol's Unauthorized.
func (s *Session) Open(label string, sealed []byte, before ...[]byte) ([]byte, error) {
	if s == nil {
		return sealed, nil
	}
	if len(sealed) < Size {
		return nil, s.protocol.wrong()
	}
	proof, body := sealed[:Size], sealed[Size:]
	if !hmac.Equal(proof, s.prove(label, body, before)) {
		return nil, s.protocol.wrong()
	}
	return body, nil
}

// Frames returns what vouches for the frames that each side sends after the
// handshake, nil without a key.
func (s *Session) Frames() (first, second *Frames) {
	if s == nil {
		return nil, nil
	}
	of := func(label string) *Frames { return &Frames{protocol: s.protocol, key: digest(s.key, label)} }
	return of(s.protocol.First), of(s.protocol.Second)
}
