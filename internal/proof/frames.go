package proof

import (
	"crypto/hmac"
	"encoding/binary"
)

// Frames are the proofs of the frames of one direction. Each frame counts, so that none
// can be changed, left out, repeated, moved, or sent by anybody else. Where there is no
// key it is nil: then proofs are empty.
type Frames struct {
	protocol *Protocol
	key      []byte
	count    uint64
}

// Next is the proof of the next frame. about is what it vouches for besides the body,
// of the same length in each frame of a protocol.
func (f *Frames) Next(body []byte, about ...byte) []byte {
	if f == nil {
		return nil
	}
	head := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), f.count)
	f.count++
	return digest(f.key, f.protocol.Frame, append(head, about...), body)
}

// Check takes the proof behind the body of the next frame away. A wrong one is the
// protocol's Unauthorized.
func (f *Frames) Check(body []byte, about ...byte) ([]byte, error) {
	if f == nil {
		return body, nil
	}
	n := len(body) - Size
	if n < 0 || !hmac.Equal(body[n:], f.Next(body[:n], about...)) {
		return nil, f.protocol.wrong()
	}
	return body[:n], nil
}
