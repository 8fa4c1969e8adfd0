package efa

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/weft-go/weft/internal/frame"
	"github.com/weft-go/weft/internal/proof"
)

// The control connection carries frames: a header of 8 bytes (magic, version,
// type, length of the body as 16 bits, little-endian) and the body. The
// handshake is
//
//	dialer             listener
//	hello         ->            whether there is a key, and a nonce
//	              <-   offer    its provider, address, connection id, limits, features
//	answer        ->            the same of the dialer
//	              <-   ready
//
// with more where there is a key, see proof.go, or where both sides have rails, see
// rail_handshake.go; or, at any point, refusal, with
// the kind of reason in a byte and the reason as text. After that the connection
// is idle until finish and received, with a count of messages, end it; written
// may come before. All of it may be in TLS.
const (
	frameMagic   = "weft"
	frameVersion = 2
	headerSize   = len(frameMagic) + 4
	mostBody     = 1024
	mostReason   = 500
)

var frames = frame.Format[frameType]{Magic: frameMagic, Version: frameVersion, MostBody: mostBody}

type frameType uint8

const (
	frameHello     frameType = 1
	frameOffer     frameType = 2
	frameAnswer    frameType = 3
	frameReady     frameType = 4
	frameRefusal   frameType = 5
	frameChallenge frameType = 6
	frameProof     frameType = 7
	frameRails     frameType = 8
	frameFinish    frameType = 16 // no more messages than this many come, and none are read
	frameReceived  frameType = 17 // all messages are here, and this many were sent
	frameWritten   frameType = 18 // no more messages than this many come; reading goes on
)

// hello is the dialer's first frame.
type hello struct {
	keyed bool // the dialer has a key, and wants the listener to have it
	nonce [proof.NonceSize]byte
}

func (h *hello) encode() []byte {
	b := []byte{0}
	if h.keyed {
		b[0] = 1
	}
	b = append(b, h.nonce[:]...)
	return append(b, frame.HelloEnd...)
}

func decodeHello(b []byte) (h hello, err error) {
	if len(b) != 1+proof.NonceSize+len(frame.HelloEnd) || b[0] > 1 || string(b[1+proof.NonceSize:]) != frame.HelloEnd {
		return h, fmt.Errorf("%w: a hello of %d bytes that is none", ErrHandshake, len(b))
	}
	h.keyed = b[0] == 1
	copy(h.nonce[:], b[1:])
	return h, nil
}

// NotWeftError says that what answered on the control connection does not speak
// weft's protocol. It is ErrHandshake.
type NotWeftError struct {
	// Got is the beginning of what it sent.
	Got []byte
}

func (e *NotWeftError) Error() string {
	return "what answers there is not weft: it sent " + strconv.Quote(string(e.Got))
}

// Is makes the error ErrHandshake.
func (e *NotWeftError) Is(target error) bool { return target == ErrHandshake }

// RefusedError carries the reason that the peer gave for refusing a connection.
// It is ErrHandshake, and its kind.
type RefusedError struct {
	// Kind is ErrUnauthorized, ErrTLS, ErrTooManyConnections,
	// ErrTooManyHandshakes, ErrHandshakeTimeout or ErrFrameTooLong, here of the
	// peer; or nil.
	Kind error
	// Reason is the peer's own text, made printable.
	Reason string
}

func (e *RefusedError) Error() string { return "refused by the peer: " + e.Reason }

// Is makes the error ErrHandshake, and its kind.
func (e *RefusedError) Is(target error) bool {
	return target == ErrHandshake || e.Kind != nil && target == e.Kind
}

// refusalKinds are those that go over the wire, as their places in here.
var refusalKinds = [...]error{nil, ErrUnauthorized, ErrTLS, ErrTooManyConnections, ErrTooManyHandshakes, ErrHandshakeTimeout, ErrFrameTooLong}

func encodeRefusal(why error) []byte {
	var kind byte
	for i, k := range refusalKinds {
		if k != nil && errors.Is(why, k) {
			kind = byte(i)
			break
		}
	}
	text := why.Error()
	return append([]byte{kind}, text[:min(len(text), mostReason)]...)
}

func decodeRefusal(body []byte) *RefusedError {
	if len(body) == 0 {
		return &RefusedError{}
	}
	e := &RefusedError{Reason: printable(body[1:])}
	if int(body[0]) < len(refusalKinds) {
		e.Kind = refusalKinds[body[0]]
	}
	return e
}

func appendFrame(b []byte, t frameType, body []byte) []byte { return frames.Append(b, t, body) }

// readFrame reads one frame of a type that is expected here.
func readFrame(r io.Reader, want ...frameType) (frameType, []byte, error) {
	t, body, err := frames.Read(r)
	var (
		other   *frame.MagicError
		version *frame.VersionError
		long    *frame.LengthError
	)
	switch {
	case errors.As(err, &other):
		return 0, nil, &NotWeftError{Got: other.Got}
	case errors.As(err, &version):
		return 0, nil, fmt.Errorf("%w: %w", ErrHandshake, err)
	case errors.As(err, &long):
		return 0, nil, fmt.Errorf("%w: %w", ErrFrameTooLong, err)
	case err != nil:
		return 0, nil, err
	case t == frameRefusal:
		return t, nil, decodeRefusal(body)
	case !slices.Contains(want, t):
		return 0, nil, fmt.Errorf("%w: frame %d where %v was expected", ErrHandshake, t, want)
	}
	return t, body, nil
}

// printable keeps a peer's text from doing things to a terminal.
func printable(text []byte) string {
	q := strconv.QuoteToASCII(string(text))
	return q[1 : len(q)-1]
}

// terms are what each side tells the other of itself.
type terms struct {
	Provider       string
	Host           string // see hostIdentity
	Address        []byte // the endpoint's
	Connection     uint32 // the id on messages to this side
	EagerLimit     uint32
	WindowMessages uint32
	WindowBytes    uint64
	MaxMessage     uint64
	Piece          uint64 // the longest message of its device
	Features       uint32 // see featureGather
}

// What a side can do beyond the two-message form; used is what both can. Bits
// that are not known here are of later versions, and not used.
const (
	featureGather uint32 = 1 << 0 // several messages in one length message
	featurePieces uint32 = 1 << 1 // payloads longer than the device's messages, in pieces
	featureRails  uint32 = 1 << 2 // pieces on several devices; only with featurePieces
	featureBeside uint32 = 1 << 3 // short messages beside the device, see beside.go

	// features are those that this side always offers.
	features = featureGather | featurePieces
)

const (
	mostText    = 64
	mostAddress = 256
)

func (t *terms) encode() []byte {
	b := []byte{byte(len(t.Provider))}
	b = append(b, t.Provider...)
	b = append(b, byte(len(t.Host)))
	b = append(b, t.Host...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(t.Address)))
	b = append(b, t.Address...)
	b = binary.LittleEndian.AppendUint32(b, t.Connection)
	b = binary.LittleEndian.AppendUint32(b, t.EagerLimit)
	b = binary.LittleEndian.AppendUint32(b, t.WindowMessages)
	b = binary.LittleEndian.AppendUint64(b, t.WindowBytes)
	b = binary.LittleEndian.AppendUint64(b, t.MaxMessage)
	b = binary.LittleEndian.AppendUint64(b, t.Piece)
	return binary.LittleEndian.AppendUint32(b, t.Features)
}

// decodeTerms reads terms, none of which can be out of bounds afterwards.
func decodeTerms(b []byte) (t terms, err error) {
	short := fmt.Errorf("%w: terms of %d bytes end too early", ErrHandshake, len(b))
	take := func(n int) []byte {
		if n > len(b) {
			b = nil
			err = short
			return make([]byte, n)
		}
		field := b[:n]
		b = b[n:]
		return field
	}
	t.Provider = string(take(int(take(1)[0])))
	t.Host = string(take(int(take(1)[0])))
	// The length is checked before it is believed.
	size := int(binary.LittleEndian.Uint16(take(2)))
	if size > mostAddress {
		return t, fmt.Errorf("%w: an address of %d bytes, where at most %d are allowed", ErrHandshake, size, mostAddress)
	}
	t.Address = append([]byte(nil), take(size)...)
	t.Connection = binary.LittleEndian.Uint32(take(4))
	t.EagerLimit = binary.LittleEndian.Uint32(take(4))
	t.WindowMessages = binary.LittleEndian.Uint32(take(4))
	t.WindowBytes = binary.LittleEndian.Uint64(take(8))
	t.MaxMessage = binary.LittleEndian.Uint64(take(8))
	t.Piece = binary.LittleEndian.Uint64(take(8))
	t.Features = binary.LittleEndian.Uint32(take(4))
	switch {
	case err != nil:
		return t, err
	case len(b) > 0:
		return t, fmt.Errorf("%w: %d bytes behind the terms", ErrHandshake, len(b))
	}
	return t, t.check()
}

func (t *terms) check() error {
	var what string
	switch {
	case t.Provider == "" || len(t.Provider) > mostText || printable([]byte(t.Provider)) != t.Provider:
		what = "a provider's name of " + strconv.Itoa(len(t.Provider)) + " bytes"
	case len(t.Host) > mostText:
		what = "a host identity of " + strconv.Itoa(len(t.Host)) + " bytes"
	case len(t.Address) == 0:
		what = "no address"
	case t.Connection == 0 || t.Connection >= 1<<30:
		what = "connection id " + strconv.Itoa(int(t.Connection))
	case t.WindowMessages == 0 || t.WindowMessages > 1<<16:
		what = "a window of " + strconv.Itoa(int(t.WindowMessages)) + " messages"
	case t.WindowBytes == 0 || t.WindowBytes > 1<<40:
		what = "a window of " + strconv.FormatUint(t.WindowBytes, 10) + " bytes"
	case t.MaxMessage == 0 || t.MaxMessage > 1<<48:
		what = "messages of up to " + strconv.FormatUint(t.MaxMessage, 10) + " bytes"
	case t.Piece < tiniestPiece:
		what = "a device for messages of " + strconv.FormatUint(t.Piece, 10) + " bytes"
	case t.EagerLimit > 1<<16:
		what = "an eager limit of " + strconv.Itoa(int(t.EagerLimit)) + " bytes"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s is out of bounds", ErrHandshake, what)
}
