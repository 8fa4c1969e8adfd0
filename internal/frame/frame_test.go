package frame

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type kind uint8

var format = Format[kind]{Magic: "magic", Version: 3, MostBody: 300}

// What was appended is read, however it comes, and no more.
func TestFramesAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := kind(rapid.Uint8().Draw(t, "kind"))
		body := rapid.SliceOfN(rapid.Byte(), 0, format.MostBody).Draw(t, "body")
		wire := format.Append([]byte("before"), want, body)[len("before"):]
		require.Len(t, wire, format.HeaderSize()+len(body))
		r := bytes.NewReader(append(bytes.Clone(wire), "behind"...))
		got, read, err := format.Read(iotest.OneByteReader(r))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, append([]byte{}, body...), read)
		require.Equal(t, len("behind"), r.Len())
		cut := rapid.IntRange(0, len(wire)-1).Draw(t, "cut")
		_, _, err = format.Read(bytes.NewReader(wire[:cut]))
		if cut == 0 {
			require.Equal(t, io.EOF, err)
		} else {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}
	})
}

func TestWhatIsNoFrame(t *testing.T) {
	for text, want := range map[string]error{
		"HTTP/1.1 400 Bad Request": &MagicError{Got: []byte("HTTP/1.1 ")},
		"mag":                      io.ErrUnexpectedEOF,
		"mac":                      &MagicError{Got: []byte("mac")},
		"magic\x04\x01\x00\x00":    &VersionError{Got: 4, Want: 3},
		"magic\x03\x01\x2d\x01":    &LengthError{Got: 301, Most: 300},
	} {
		_, _, err := format.Read(bytes.NewReader([]byte(text)))
		require.Equal(t, want, err, text)
	}
}
