package tagged

import (
	"encoding/binary"
	"fmt"
)

// LengthSize is the size in bytes of the length at the start of a length
// message. A payload up to the agreed eager limit may follow in the same
// message.
const LengthSize = 8

// PutLength writes the length n, of a message of n bytes, to the first
// LengthSize bytes of dst, which must have room for them. n is not negative.
func PutLength(dst []byte, n int64) {
	binary.LittleEndian.PutUint64(dst[:LengthSize], uint64(n))
}

// ParseLength reads a length message. maxMessage is the longest message in
// bytes that is accepted, eagerLimit the longest payload that may ride in the
// length message.
//
// payload is nil if a payload message is to follow. It is not nil, but may be
// empty, if there is none to follow: because it rode along or because length
// is 0. payload is a part of message.
//
// Every error is a *LengthError.
func ParseLength(message []byte, maxMessage int64, eagerLimit int) (length int64, payload []byte, err error) {
	if len(message) < LengthSize {
		return 0, nil, &LengthError{Problem: LengthTruncated, Limit: LengthSize, Got: len(message)}
	}
	length = int64(binary.LittleEndian.Uint64(message))
	rest := message[LengthSize:len(message):len(message)]
	switch {
	case length < 0:
		return 0, nil, &LengthError{Problem: LengthNegative, Length: length, Limit: maxMessage, Got: len(rest)}
	case length > maxMessage:
		return 0, nil, &LengthError{Problem: LengthAboveMaximum, Length: length, Limit: maxMessage, Got: len(rest)}
	case len(rest) == 0 && length > 0:
		return length, nil, nil
	case int64(len(rest)) != length:
		return 0, nil, &LengthError{Problem: LengthMismatch, Length: length, Limit: length, Got: len(rest)}
	case len(rest) > 0 && len(rest) > eagerLimit:
		return 0, nil, &LengthError{Problem: LengthAboveEager, Length: length, Limit: int64(eagerLimit), Got: len(rest)}
	}
	return length, rest, nil
}

// LengthProblem says what is wrong with a length message.
type LengthProblem uint8

// What can be wrong with a length message.
const (
	LengthTruncated    LengthProblem = iota + 1 // shorter than LengthSize
	LengthNegative                              // announces less than nothing
	LengthAboveMaximum                          // announces more than is accepted
	LengthMismatch                              // the bytes that follow are not the payload announced
	LengthAboveEager                            // the payload is too long to ride along
	LengthBadGroup                              // a group's count or lengths do not fit its bytes
)

// LengthError is about a length message that the peer should not have sent.
type LengthError struct {
	Problem LengthProblem
	// Length is the length announced, 0 for LengthTruncated. For LengthBadGroup
	// it is the number of messages that were to follow.
	Length int64
	// Limit is what would have been right, or the most that would have been:
	// LengthSize, the maximum, the length announced, or the eager limit. For
	// LengthBadGroup it is the most messages there could be, or how many bytes
	// the next one should have had.
	Limit int64
	// Got is the number of bytes that followed the length, and for
	// LengthTruncated that of the whole message.
	Got int
}

func (e *LengthError) Error() string {
	switch e.Problem {
	case LengthTruncated:
		return fmt.Sprintf("tagged: length message of %d bytes, want at least %d", e.Got, e.Limit)
	case LengthNegative:
		return fmt.Sprintf("tagged: negative message length %d, want 0 to %d", e.Length, e.Limit)
	case LengthAboveMaximum:
		return fmt.Sprintf("tagged: message length %d, want at most %d", e.Length, e.Limit)
	case LengthMismatch:
		return fmt.Sprintf("tagged: %d bytes follow message length %d, want %d or none", e.Got, e.Length, e.Limit)
	case LengthAboveEager:
		return fmt.Sprintf("tagged: payload of %d bytes in the length message, want at most %d", e.Got, e.Limit)
	case LengthBadGroup:
		return fmt.Sprintf("tagged: group of %d messages in %d bytes, limit %d", e.Length, e.Got, e.Limit)
	default:
		return "tagged: bad length message"
	}
}
