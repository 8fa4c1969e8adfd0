package tagged

import (
	"encoding/binary"
	"fmt"
)

// ControlSize is the size in bytes of every control message: the type, seven
// bytes of zero, and two counters, little-endian.
const ControlSize = 24

// ControlType says what a control message is about.
type ControlType uint8

// The types of control message. None is 0, so that a message of zeros is none.
const (
	// ControlCredit tells how much the reader has consumed since the connection
	// began, see [SendCredit.Grant].
	ControlCredit ControlType = iota + 1
	// ControlFlush asks to be told when the first Messages messages are all here.
	ControlFlush
	// ControlFlushed tells that the first Messages messages are all here.
	ControlFlushed
	// ControlReady tells that the payload of a message that is longer than the
	// window can come: Messages is how many were before it.
	ControlReady
	// ControlInvite tells where the sender has memory for short messages of the connection, if both
	// sides are processes of one host: Messages is what it is called by, and Bytes what it begins with.
	ControlInvite
)

// Control is a control message.
type Control struct {
	Type ControlType
	// Messages and Bytes count since the connection began. They grow only, so
	// that a control message may be lost to a later one, or overtaken by it.
	Messages, Bytes uint64
}

// PutControl writes c to the first ControlSize bytes of dst, which must have
// room for them.
func PutControl(dst []byte, c Control) {
	dst = dst[:ControlSize]
	binary.LittleEndian.PutUint64(dst, uint64(c.Type))
	binary.LittleEndian.PutUint64(dst[8:], c.Messages)
	binary.LittleEndian.PutUint64(dst[16:], c.Bytes)
}

// ParseControl reads a control message. Every error is a *ControlError. There
// is no skipping of what is not understood: what a peer may send is agreed in
// the handshake, so anything else means that the connection is beyond help.
func ParseControl(message []byte) (Control, error) {
	if len(message) != ControlSize {
		return Control{}, &ControlError{Problem: ControlBadSize, Got: len(message)}
	}
	c := Control{
		Type:     ControlType(message[0]),
		Messages: binary.LittleEndian.Uint64(message[8:]),
		Bytes:    binary.LittleEndian.Uint64(message[16:]),
	}
	if c.Type < ControlCredit || c.Type > ControlInvite {
		return Control{}, &ControlError{Problem: ControlUnknownType, Type: c.Type, Got: len(message)}
	}
	if binary.LittleEndian.Uint64(message)>>8 != 0 {
		return Control{}, &ControlError{Problem: ControlReserved, Type: c.Type, Got: len(message)}
	}
	return c, nil
}

// ControlProblem says what is wrong with a control message.
type ControlProblem uint8

// What can be wrong with a control message.
const (
	ControlBadSize     ControlProblem = iota + 1 // not ControlSize bytes
	ControlUnknownType                           // a type that is not known here
	ControlReserved                              // reserved bytes are not zero
)

// ControlError is about a control message that the peer should not have sent.
type ControlError struct {
	Problem ControlProblem
	// Type is the type of the message, 0 for ControlBadSize.
	Type ControlType
	// Got is the size of the message in bytes.
	Got int
}

func (e *ControlError) Error() string {
	switch e.Problem {
	case ControlBadSize:
		return fmt.Sprintf("tagged: control message of %d bytes, want %d", e.Got, ControlSize)
	case ControlUnknownType:
		return fmt.Sprintf("tagged: control message of unknown type %d, want %d to %d", e.Type, ControlCredit, ControlInvite)
	case ControlReserved:
		return "tagged: reserved bytes of a control message are not zero"
	default:
		return "tagged: bad control message"
	}
}
