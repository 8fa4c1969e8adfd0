// Package tagged holds the pure logic of ordered messages over a transport
// that matches messages by a 64-bit tag, keeps the order of matching, and
// completes operations in any order: the layout of tags, the length and control
// messages, the deques that give the order back, credits, and the arbiter
// between connections. [Matcher] does the matching itself, by the rules of MPI.
//
// Nothing here starts a goroutine, reads a clock or does I/O, and nothing
// allocates once it has grown to its working size, but for errors. The types
// are not safe for concurrent use: each value is used by one goroutine at a
// time. The functions may be called by anyone at any time.
package tagged

// A tag is, from the lowest bit: 32 bits of message id, KLength, KPayload, and
// 30 bits of connection id. The layout of connection 0 is that of a single
// connection: an indicator or'ed with the message id.
const (
	// KLength marks the length message of a write.
	KLength uint64 = 1 << 32
	// KPayload marks the payload message of a write.
	KPayload uint64 = 1 << 33
	// KControl, both marks, is a control message of a connection.
	KControl = KLength | KPayload

	// MaxConnection is the largest connection id.
	MaxConnection = 1<<30 - 1

	// HandshakeID is the highest bit of a connection id. It is set in those that
	// a handshake gives out; the ids without it are for connections that an
	// application made by itself.
	HandshakeID = 1 << 29

	// SharedLength and SharedIgnore are the tag and the ignore mask of a receive
	// that takes length messages of any connection with HandshakeID, with any
	// message id, and nothing else.
	SharedLength = KLength | HandshakeID<<connectionShift
	SharedIgnore = ^(KControl | HandshakeID<<connectionShift)
	// MessageIgnore is the ignore mask of a receive with the tag LengthTag(c, 0)
	// that takes length messages of the connection c, with any message id, and
	// nothing else.
	MessageIgnore uint64 = 1<<32 - 1
	// ControlIgnore is the ignore mask of a receive with the tag KControl that
	// takes control messages of any connection and id, and nothing else.
	ControlIgnore = ^KControl

	connectionShift = 34
)

// Kind says what a tagged message is.
type Kind uint8

// The kinds of tagged message.
const (
	KindNone Kind = iota // neither mark is set: a matched message (MatchedTag), or none of ours
	KindLength
	KindPayload
	KindControl
)

func (k Kind) String() string {
	switch k {
	case KindLength:
		return "length"
	case KindPayload:
		return "payload"
	case KindControl:
		return "control"
	default:
		return "none"
	}
}

// LengthTag is the tag of the length message of a write. A connection id above
// MaxConnection loses the bits that do not fit: whoever takes an id from a peer
// checks it once, before it is used here.
func LengthTag(connection, id uint32) uint64 {
	return uint64(connection)<<connectionShift | KLength | uint64(id)
}

// PayloadTag is the tag of the payload message of a write, see [LengthTag].
func PayloadTag(connection, id uint32) uint64 {
	return uint64(connection)<<connectionShift | KPayload | uint64(id)
}

// ControlTag is the tag of a control message, see [LengthTag].
func ControlTag(connection, id uint32) uint64 {
	return uint64(connection)<<connectionShift | KControl | uint64(id)
}

// ParseTag takes a tag apart. Every tag can be: one that is none of ours has
// KindNone.
func ParseTag(tag uint64) (kind Kind, connection, id uint32) {
	return Kind(tag >> 32 & 3), uint32(tag >> connectionShift), uint32(tag)
}
