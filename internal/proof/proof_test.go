package proof

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	errUnauthorized = errors.New("not authorized")
	protocol        = Protocol{Session: "session", First: "frames of one", Second: "frames of the other", Frame: "frame", Unauthorized: errUnauthorized}
)

func testKey(i byte) []byte { return bytes.Repeat([]byte{i, 0xa5}, 16) }

// A proof is worth something only for the same body, label, context, key,
// beginning and protocol.
func TestProofs(t *testing.T) {
	one, two := []byte("hello"), []byte("challenge")
	s := protocol.NewSession(testKey(0), one, two, nil)
	sealed := s.Seal("offer", []byte("terms"), []byte("before"))
	body, err := s.Open("offer", sealed, []byte("before"))
	require.NoError(t, err)
	require.Equal(t, "terms", string(body))
	for name, open := range map[string]func() ([]byte, error){
		"another label":   func() ([]byte, error) { return s.Open("answer", sealed, []byte("before")) },
		"another context": func() ([]byte, error) { return s.Open("offer", sealed, []byte("befor")) },
		"no context":      func() ([]byte, error) { return s.Open("offer", sealed) },
		"more context":    func() ([]byte, error) { return s.Open("offer", sealed, []byte("before"), nil) },
		"a shorter body":  func() ([]byte, error) { return s.Open("offer", sealed[:len(sealed)-1], []byte("before")) },
		// The same bytes, divided elsewhere.
		"a moved border": func() ([]byte, error) { return s.Open("offer", sealed[:len(sealed)-1], []byte("sbefore")) },
		"a short proof":  func() ([]byte, error) { return s.Open("offer", sealed[:Size-1], []byte("before")) },
		"nothing":        func() ([]byte, error) { return s.Open("offer", nil, []byte("before")) },
	} {
		_, err := open()
		require.ErrorIs(t, err, errUnauthorized, name)
		require.EqualError(t, err, "not authorized: the proof of the key is wrong")
	}
	another := protocol
	another.Session = "sessions"
	for name, other := range map[string]*Session{
		"another key":          protocol.NewSession(testKey(1), one, two, nil),
		"a key with a zero":    protocol.NewSession(append(testKey(0), 0), one, two, nil),
		"another hello":        protocol.NewSession(testKey(0), []byte("hellO"), two, nil),
		"another challenge":    protocol.NewSession(testKey(0), one, []byte("challengE"), nil),
		"a TLS session":        protocol.NewSession(testKey(0), one, two, []byte("tls")),
		"less said":            protocol.NewSession(testKey(0), one, two),
		"a moved border":       protocol.NewSession(testKey(0), []byte("helloc"), []byte("hallenge"), nil),
		"the nonces exchanged": protocol.NewSession(testKey(0), two, one, nil),
		"another protocol":     another.NewSession(testKey(0), one, two, nil),
	} {
		_, err := other.Open("offer", sealed, []byte("before"))
		require.ErrorIs(t, err, errUnauthorized, name)
	}
	// Without a key there is nothing to it.
	var none *Session
	require.Equal(t, "terms", string(none.Seal("offer", []byte("terms"))))
	body, err = none.Open("offer", []byte("terms"))
	require.NoError(t, err)
	require.Equal(t, "terms", string(body))
}

// Frames are vouched for one by one, each way on its own.
func TestFrames(t *testing.T) {
	s := protocol.NewSession(testKey(0))
	sent, other := s.Frames()
	came, _ := s.Frames()
	require.NotEqual(t, sent.Next(nil, 1), other.Next(nil, 1), "the ways differ")
	_, err := came.Check(sent.Next(nil, 1), 1)
	require.ErrorIs(t, err, errUnauthorized, "the first one is missing")
	body, err := came.Check(append([]byte("body"), sent.Next([]byte("body"), 2)...), 2)
	require.ErrorIs(t, err, errUnauthorized, "came counted the wrong one, and sent two")
	require.Nil(t, body)
	third := append([]byte("body"), (&Frames{protocol: &protocol, key: sent.key, count: 2}).Next([]byte("body"), 2)...)
	body, err = came.Check(third, 2)
	require.NoError(t, err)
	require.Equal(t, "body", string(body))
	came.count--
	_, err = came.Check(third, 1)
	require.ErrorIs(t, err, errUnauthorized, "it is about something else")
	_, err = came.Check(third[:Size-1], 2)
	require.ErrorIs(t, err, errUnauthorized, "too short for a proof")
	first, second := (*Session)(nil).Frames()
	require.Nil(t, first.Next([]byte("body"), 1))
	body, err = second.Check([]byte("body"), 1)
	require.NoError(t, err)
	require.Equal(t, "body", string(body))
}
