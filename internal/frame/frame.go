// Package frame is the form of the frames of weft's handshakes: a magic that says whose
// they are, a version of a byte, a type, the length of the body in 16 bits
// (little-endian), and the body.
package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// HelloEnd ends the first frame of a handshake. It makes servers of protocols with
// lines, HTTP above all, answer at once that they do not understand, where they would
// wait for more.
const HelloEnd = "\r\n\r\n"

// Format is that of the frames of one protocol, whose types are of T.
type Format[T ~uint8] struct {
	Magic   string
	Version byte
	// MostBody is the longest body that is read, in bytes.
	MostBody int
}

// HeaderSize is what goes before the body, in bytes.
func (f Format[T]) HeaderSize() int { return len(f.Magic) + 4 }

// Append appends a frame, whose body has at most 65535 bytes.
func (f Format[T]) Append(b []byte, t T, body []byte) []byte {
	b = append(b, f.Magic...)
	b = append(b, f.Version, byte(t))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(body)))
	return append(b, body...)
}

// Read reads one frame. What it allocates is bounded by MostBody. The error is io.EOF
// only where nothing came, a *MagicError, *VersionError or *LengthError where what came
// is none of this format, or what r says.
func (f Format[T]) Read(r io.Reader) (t T, body []byte, err error) {
	header := make([]byte, f.HeaderSize())
	fixed := len(f.Magic)
	n, err := io.ReadFull(r, header)
	if begin := min(n, fixed); string(header[:begin]) != f.Magic[:begin] {
		return 0, nil, &MagicError{Got: bytes.Clone(header[:n])}
	}
	if err != nil {
		return 0, nil, err
	}
	if header[fixed] != f.Version {
		return 0, nil, &VersionError{Got: header[fixed], Want: f.Version}
	}
	size := int(binary.LittleEndian.Uint16(header[fixed+2:]))
	if size > f.MostBody {
		return 0, nil, &LengthError{Got: size, Most: f.MostBody}
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return T(header[fixed+1]), body, nil
}

// MagicError says that what came begins otherwise.
type MagicError struct{ Got []byte }

func (e *MagicError) Error() string { return fmt.Sprintf("no frame: it begins with %q", e.Got) }

// VersionError says that the other side speaks another version.
type VersionError struct{ Got, Want byte }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the other side speaks version %d of the protocol, this one %d", e.Got, e.Want)
}

// LengthError says that a body is too long.
type LengthError struct{ Got, Most int }

func (e *LengthError) Error() string {
	return fmt.Sprintf("%d bytes, where at most %d are allowed", e.Got, e.Most)
}
