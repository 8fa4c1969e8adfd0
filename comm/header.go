package comm

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// Every message between two ranks, but for the data of a rendezvous, begins with a
// header, little-endian:
//
//	0      kind
//	1-3    0
//	4-7    context    of the communicator, where the receiver has it
//	8-15   tag        or, in answers, the id of what is answered, or a count
//	16-23  id         of the sender's operation, not in kindEager
//	24-31  length     of the message, in kindReady, kindOpen and kindClear only
//	32-47  remote     where it is and its key, in kindOpen only
//
// In kindNotice, all from the tag on are the extension's.
//
// What a kind has no use for is not sent. In a message that the provider matches, whose
// own tag has the context, bytes 1 to 7 are its number instead: how many of these the
// sender has sent to the receiver before.
type kind uint8

const (
	kindEager   kind = iota + 1 // the message
	kindSync                    // the message; kindMatched answers
	kindReady                   // a message waits at its sender; kindClear answers
	kindClear                   // its receiver wants so much of it, as id
	kindData                    // short data of a rendezvous, for the receiver's operation
	kindMatched                 // a receive was found, or has all that it wants
	kindOpen                    // kindReady of a message that may be read; kindMatched or kindClear answers
	kindNotice                  // of an extension

	// Where providers match (credit.go):
	kindCredit // so many messages, and as id so many bytes, were seen of the peer's
	kindBring  // so many were sent, and the sender waits for credit
	kindLeave  // so many were sent, and there will be no more

	// The sender has closed the communicator, and had no extension there: one message to
	// each other rank.
	kindGone
)

const (
	shortHeader = 16
	idHeader    = 24
	longHeader  = 32
	openHeader  = 48
)

// headerSizes are those of each kind, and whether a payload may follow.
var headerSizes = [...]struct {
	size    int
	payload bool
}{
	kindEager:   {shortHeader, true},
	kindSync:    {idHeader, true},
	kindReady:   {longHeader, false},
	kindClear:   {longHeader, false},
	kindData:    {shortHeader, true},
	kindMatched: {shortHeader, false},
	kindOpen:    {openHeader, false},
	kindNotice:  {openHeader, false},
	kindCredit:  {idHeader, false},
	kindBring:   {shortHeader, false},
	kindLeave:   {shortHeader, false},
	kindGone:    {shortHeader, false},
}

type header struct {
	kind    kind
	context uint32
	number  uint64 // of a message that the provider matches, which has no context in here
	tag     uint64
	id      uint64
	length  uint64
	remote  fabric.Remote
}

// put writes the header to dst, and returns how long it is.
func (h *header) put(dst *[openHeader]byte) []byte {
	binary.LittleEndian.PutUint64(dst[:], uint64(h.kind)|uint64(h.context)<<32|h.number<<8)
	binary.LittleEndian.PutUint64(dst[8:], h.tag)
	size := headerSizes[h.kind].size
	if size > shortHeader {
		binary.LittleEndian.PutUint64(dst[16:], h.id)
	}
	if size > idHeader {
		binary.LittleEndian.PutUint64(dst[24:], h.length)
	}
	if size > longHeader {
		binary.LittleEndian.PutUint64(dst[32:], h.remote.Address)
		binary.LittleEndian.PutUint64(dst[40:], h.remote.Key)
	}
	return dst[:size]
}

// parseHeader takes a message of a connection apart. Every error is ErrProtocol.
func parseHeader(m []byte) (h header, payload []byte, err error) {
	if h, payload, err = parseNumbered(m); err != nil {
		return h, nil, err
	}
	if h.number&0xffffff != 0 {
		return h, nil, fmt.Errorf("%w: kind %d", ErrProtocol, uint32(h.kind)|uint32(h.number)<<8)
	}
	h.context, h.number = uint32(h.number>>24), 0
	return h, payload, nil
}

// parseNumbered takes a message that the provider has matched apart, but for its
// context. Every error is ErrProtocol.
func parseNumbered(m []byte) (h header, payload []byte, err error) {
	if len(m) < shortHeader {
		return h, nil, fmt.Errorf("%w: %d bytes, at least %d are needed", ErrProtocol, len(m), shortHeader)
	}
	first := binary.LittleEndian.Uint64(m)
	h.kind, h.number = kind(first), first>>8
	if h.kind == 0 || int(h.kind) >= len(headerSizes) {
		return h, nil, fmt.Errorf("%w: kind %d", ErrProtocol, uint32(first))
	}
	form := headerSizes[h.kind]
	if len(m) < form.size || len(m) > form.size && !form.payload {
		return h, nil, fmt.Errorf("%w: %d bytes of kind %d", ErrProtocol, len(m), h.kind)
	}
	h.tag = binary.LittleEndian.Uint64(m[8:])
	if form.size > shortHeader {
		h.id = binary.LittleEndian.Uint64(m[16:])
	}
	if form.size > idHeader {
		h.length = binary.LittleEndian.Uint64(m[24:])
	}
	if form.size > longHeader {
		h.remote.Address = binary.LittleEndian.Uint64(m[32:])
		h.remote.Key = binary.LittleEndian.Uint64(m[40:])
	}
	return h, m[form.size:], nil
}

// matched says whether it is a kind of message that a receive is to be found for.
func (k kind) matched() bool {
	return k == kindEager || k == kindSync || k == kindReady || k == kindOpen
}

func (h *header) envelope(source int) tagged.Envelope {
	return tagged.Envelope{Context: h.context, Source: uint32(source), Tag: h.tag}
}
