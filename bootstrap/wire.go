package bootstrap

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	form "github.com/weft-go/weft/internal/frame"
	"github.com/weft-go/weft/internal/proof"
)

// A connection to the server of a store begins with a handshake, whose frames have
// the form of internal/frame (numbers are little-endian there and here):
//
//	rank                server
//	hello         ->            its rank, the size and name of the job, a nonce
//	              <-   challenge   a nonce; and
//	proof         ->            of the key: these two with a key only
//	              <-   welcome  which rank serves the store
//
// or, at any point, refusal. After that there are frames with a length of 32 bits, a
// kind, an id of 32 bits and a payload; with a key there is a proof behind it, which
// the length counts (see proof.go). Each request of a rank has one answer with its
// id, in any order. The server also sends notices, with id 0. A rank that leaves in
// order says bye.
const (
	magic      = "weftjob"
	version    = 1
	mostBody   = 512
	mostJob    = 128 // bytes, the name of a job
	mostReason = 400

	frameTop  = 5 // kind and id
	mostFrame = frameTop + 2 + MaxKey + MaxValue + proof.Size

	// mostOpen is how many requests of one rank the server has open, and mostCalls
	// how many a rank makes, cancels left out.
	mostOpen  = 256
	mostCalls = 64

	// mostKeys is how many bytes of keys go into one answer.
	mostKeys = 64 << 10
)

var hellos = form.Format[helloType]{Magic: magic, Version: version, MostBody: mostBody}

type helloType uint8

const (
	typeHello     helloType = 1
	typeChallenge helloType = 2
	typeProof     helloType = 3
	typeWelcome   helloType = 4
	typeRefusal   helloType = 5
)

type frameKind uint8

const (
	kindSet    frameKind = 1 // length of the key in 16 bits, key, value
	kindGet    frameKind = 2 // key
	kindAdd    frameKind = 3 // delta in 64 bits, key
	kindDelete frameKind = 4 // key
	kindKeys   frameKind = 5 // length of the prefix in 16 bits, prefix, the key to go on behind
	kindCancel frameKind = 6 // of the get with this id
	kindBye    frameKind = 7

	kindOK     frameKind = 16 // a value, a sum in 64 bits, or keys, each with a length of 16 bits
	kindError  frameKind = 17 // a byte that says which kind, and text
	kindLost   frameKind = 18 // a notice: the rank that is lost, in 32 bits, and why
	kindClosed frameKind = 19 // a notice: the server ends, and why
)

// frame is one after the handshake.
type frame struct {
	kind    frameKind
	id      uint32
	payload []byte
}

// appendHello makes a frame of the handshake.
func appendHello(b []byte, t helloType, body []byte) []byte { return hellos.Append(b, t, body) }

// readHello reads a frame of the handshake. A refusal is an error.
func readHello(r io.Reader, want ...helloType) (helloType, []byte, error) {
	t, body, err := hellos.Read(r)
	var (
		other   *form.MagicError
		version *form.VersionError
		long    *form.LengthError
	)
	switch {
	case errors.As(err, &other):
		return 0, nil, &NotStoreError{Got: other.Got}
	case errors.As(err, &version), errors.As(err, &long):
		return 0, nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	case err != nil:
		return 0, nil, err
	case t == typeRefusal:
		return t, nil, decodeRefusal(body)
	case !slices.Contains(want, t):
		return 0, nil, fmt.Errorf("%w: frame %d of the handshake, where %v was expected", ErrProtocol, t, want)
	}
	return t, body, nil
}

// hello is what a rank says first.
type hello struct {
	keyed      bool // it has a key, and wants the server to have it
	nonce      [proof.NonceSize]byte
	rank, size uint32
	job        string
}

func (h *hello) encode() []byte {
	b := []byte{0}
	if h.keyed {
		b[0] = 1
	}
	b = append(b, h.nonce[:]...)
	b = binary.LittleEndian.AppendUint32(b, h.rank)
	b = binary.LittleEndian.AppendUint32(b, h.size)
	b = append(b, byte(len(h.job)))
	b = append(b, h.job...)
	return append(b, form.HelloEnd...)
}

func decodeHello(b []byte) (h hello, err error) {
	const fixed = 1 + proof.NonceSize + 4 + 4 + 1
	if len(b) < fixed || b[0] > 1 || len(b) != fixed+int(b[fixed-1])+len(form.HelloEnd) || b[fixed-1] > mostJob || string(b[len(b)-len(form.HelloEnd):]) != form.HelloEnd {
		return h, fmt.Errorf("%w: a hello of %d bytes that is none", ErrProtocol, len(b))
	}
	h.keyed = b[0] == 1
	copy(h.nonce[:], b[1:])
	h.rank = binary.LittleEndian.Uint32(b[1+proof.NonceSize:])
	h.size = binary.LittleEndian.Uint32(b[1+proof.NonceSize+4:])
	h.job = string(b[fixed : len(b)-len(form.HelloEnd)])
	if h.size == 0 || h.size > MaxSize || h.rank >= h.size {
		return h, fmt.Errorf("%w: rank %d of %d", ErrProtocol, h.rank, h.size)
	}
	return h, nil
}

// errorKinds are those that go over the wire, as their places in here.
var errorKinds = [...]error{nil, ErrUnauthorized, ErrRankTaken, ErrOtherJob, ErrProtocol, ErrNotNumber, errEnding, context.Canceled, ErrFull}

func encodeError(err error) []byte {
	var kind byte
	for i, k := range errorKinds {
		if k != nil && errors.Is(err, k) {
			kind = byte(i)
			break
		}
	}
	text := bare(err)
	return append([]byte{kind}, text[:min(len(text), mostReason)]...)
}

// decodeError returns what encodeError was given: the text, made printable, and which
// of errorKinds it is.
func decodeError(body []byte) (text string, kind error) {
	if len(body) == 0 {
		return "without a reason", nil
	}
	if int(body[0]) < len(errorKinds) {
		kind = errorKinds[body[0]]
	}
	return printable(string(body[1:min(len(body), 1+mostReason)])), kind
}

func decodeRefusal(body []byte) error {
	text, kind := decodeError(body)
	return &RefusedError{Kind: kind, Reason: text}
}

// writeFrame writes a frame with the proof that is due.
func writeFrame(w io.Writer, f frame, proofs *proof.Frames) error {
	size := frameTop + len(f.payload)
	if proofs != nil {
		size += proof.Size
	}
	b := make([]byte, 0, 4+size)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = append(b, byte(f.kind))
	b = binary.LittleEndian.AppendUint32(b, f.id)
	b = append(b, f.payload...)
	b = append(b, proofs.Next(b[4:])...)
	_, err := w.Write(b)
	return err
}

// readFrame reads a frame and checks its proof. It takes no more memory than what
// has come, whatever the length says.
func readFrame(r io.Reader, proofs *proof.Frames) (frame, error) {
	var top [4]byte
	if _, err := io.ReadFull(r, top[:]); err != nil {
		return frame{}, err
	}
	size := binary.LittleEndian.Uint32(top[:])
	if size > mostFrame {
		return frame{}, fmt.Errorf("%w: a frame of %d bytes, where at most %d are allowed", ErrProtocol, size, mostFrame)
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(size)); err != nil {
		return frame{}, errors.Join(io.ErrUnexpectedEOF, err)
	}
	b, err := proofs.Check(body.Bytes())
	if err != nil {
		return frame{}, err
	}
	if len(b) < frameTop {
		return frame{}, fmt.Errorf("%w: a frame of %d bytes, where at least %d are needed", ErrProtocol, len(b), frameTop)
	}
	return frame{frameKind(b[0]), binary.LittleEndian.Uint32(b[1:]), b[frameTop:]}, nil
}

// pair puts a text of up to 64 KiB, with its length, before the rest.
func pair(first string, rest []byte) []byte {
	b := make([]byte, 0, 2+len(first)+len(rest))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(first)))
	b = append(b, first...)
	return append(b, rest...)
}

// split is the reverse of pair.
func split(b []byte) (first string, rest []byte, err error) {
	if len(b) >= 2 {
		if n := int(binary.LittleEndian.Uint16(b)); len(b) >= 2+n {
			return string(b[2 : 2+n]), b[2+n:], nil
		}
	}
	return "", nil, fmt.Errorf("%w: a payload of %d bytes ends too early", ErrProtocol, len(b))
}

// readAtMost reads to the end, which must come within most bytes.
func readAtMost(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = &LimitError{What: "the length of a file", Got: int64(len(b)), Most: most}
	}
	return b, err
}
