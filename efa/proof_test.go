package efa

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A proof is worth something only for the same body, label, context, key,
// nonces and TLS session.
func TestProofs(t *testing.T) {
	one, two := []byte("hello"), []byte("challenge")
	s := newSession(testKey(0), one, two, nil)
	sealed := s.seal(offerLabel, []byte("terms"), []byte("before"))
	body, err := s.open(offerLabel, sealed, []byte("before"))
	require.NoError(t, err)
	require.Equal(t, "terms", string(body))
	for name, open := range map[string]func() ([]byte, error){
		"another label":   func() ([]byte, error) { return s.open(answerLabel, sealed, []byte("before")) },
		"another context": func() ([]byte, error) { return s.open(offerLabel, sealed, []byte("befor")) },
		"no context":      func() ([]byte, error) { return s.open(offerLabel, sealed) },
		"more context":    func() ([]byte, error) { return s.open(offerLabel, sealed, []byte("before"), nil) },
		"a shorter body": func() ([]byte, error) {
			return s.open(offerLabel, sealed[:len(sealed)-1], []byte("before"))
		},
		// The same bytes, divided elsewhere.
		"a moved border": func() ([]byte, error) {
			return s.open(offerLabel, sealed[:len(sealed)-1], []byte("sbefore"))
		},
		"a short proof": func() ([]byte, error) { return s.open(offerLabel, sealed[:proofSize-1], []byte("before")) },
		"nothing":       func() ([]byte, error) { return s.open(offerLabel, nil, []byte("before")) },
	} {
		_, err := open()
		require.ErrorIs(t, err, ErrUnauthorized, name)
	}
	for name, other := range map[string]*session{
		"another key":          newSession(testKey(1), one, two, nil),
		"a key with a zero":    newSession(append(testKey(0), 0), one, two, nil),
		"another hello":        newSession(testKey(0), []byte("hellO"), two, nil),
		"another challenge":    newSession(testKey(0), one, []byte("challengE"), nil),
		"a TLS session":        newSession(testKey(0), one, two, []byte("tls")),
		"a moved border":       newSession(testKey(0), []byte("helloc"), []byte("hallenge"), nil),
		"the nonces exchanged": newSession(testKey(0), two, one, nil),
	} {
		_, err := other.open(offerLabel, sealed, []byte("before"))
		require.ErrorIs(t, err, ErrUnauthorized, name)
	}
	// Without a key there is nothing to it.
	var none *session
	require.Equal(t, "terms", string(none.seal(offerLabel, []byte("terms"))))
	body, err = none.open(offerLabel, []byte("terms"))
	require.NoError(t, err)
	require.Equal(t, "terms", string(body))
}

// Frames are vouched for one by one, each way on its own.
func TestFrameProofs(t *testing.T) {
	s := newSession(testKey(0), nil, nil, nil)
	sent, other := s.frames()
	came, _ := s.frames()
	require.NotEqual(t, sent.next(frameFinish, nil), other.next(frameFinish, nil), "the ways differ")
	_, err := came.check(frameFinish, sent.next(frameFinish, nil))
	require.ErrorIs(t, err, errWrongProof, "the first one is missing")
	body, err := came.check(frameReceived, append([]byte("body"), sent.next(frameReceived, []byte("body"))...))
	require.ErrorIs(t, err, errWrongProof, "came counted the wrong one, and sent two")
	require.Nil(t, body)
	body, err = came.check(frameReceived, append([]byte("body"), (&frameProofs{key: sent.key, count: 2}).next(frameReceived, []byte("body"))...))
	require.NoError(t, err)
	require.Equal(t, "body", string(body))
	dialer, listener := (*session)(nil).frames()
	require.Nil(t, dialer.next(frameFinish, []byte("body")))
	body, err = listener.check(frameFinish, []byte("body"))
	require.NoError(t, err)
	require.Equal(t, "body", string(body))
}

// Why not goes over the wire as a kind and as text.
func TestRefusalKinds(t *testing.T) {
	for _, kind := range refusalKinds[1:] {
		got := decodeRefusal(encodeRefusal(fmt.Errorf("%w: because", kind)))
		require.ErrorIs(t, got, kind)
		require.ErrorIs(t, got, ErrHandshake)
		require.Equal(t, kind.Error()+": because", got.Reason)
		for _, other := range refusalKinds[1:] {
			require.Equal(t, other == kind, errors.Is(got, other))
		}
	}
	got := decodeRefusal(encodeRefusal(io.EOF))
	require.Equal(t, RefusedError{Reason: "EOF"}, *got)
	require.Equal(t, RefusedError{Reason: "of a later version"}, *decodeRefusal([]byte("\xffof a later version")))
	require.Equal(t, RefusedError{}, *decodeRefusal(nil))
	require.Equal(t, `\x1b[31m`, decodeRefusal([]byte("\x00\x1b[31m")).Reason)
	require.LessOrEqual(t, len(encodeRefusal(errors.New(string(make([]byte, 5000))))), mostBody)
}

// A frame that is too long is refused by its length alone.
func TestFrameTooLong(t *testing.T) {
	b := newBed(t, plain)
	l, err := b.open(t, patient(Config{})).Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	tcp := stranger(t, l, append([]byte("weft\x02\x01"), 0x01, 0x04))
	err = refusal(t, tcp)
	require.ErrorIs(t, err, ErrFrameTooLong)
	require.ErrorContains(t, err, "1025 bytes, where at most 1024 are allowed")
	require.NoError(t, l.Close())
}

// With TLS, whoever sends the last frames does not wait for the peer to take
// them, nor lose them by closing.
func TestControlOverTLSDoesNotBlock(t *testing.T) {
	a := newAuthority(t)
	here, there := net.Pipe()
	client := a.client()
	client.ServerName = "127.0.0.1"
	peer := tls.Client(there, client)
	server := tls.Server(here, a.server(t))
	shaken := make(chan error)
	go func() { shaken <- server.Handshake() }()
	require.NoError(t, peer.Handshake())
	// Reading takes in what the listener's side of TLS still had to say.
	first := make(chan error)
	go func() {
		_, err := peer.Read(make([]byte, 1))
		first <- err
	}()
	require.NoError(t, <-shaken)
	_, err := server.Write([]byte{1})
	require.NoError(t, err)
	require.NoError(t, <-first)

	k := &control{tcp: server, beneath: here}
	// Nobody reads yet: a pipe holds nothing.
	k.send(frameFinish, 5)
	k.send(frameReceived, 6)
	k.close()
	far := &control{tcp: peer}
	for i, want := range []frameType{frameFinish, frameReceived} {
		kind, count, err := far.read(far.tcp)
		require.NoError(t, err)
		require.Equal(t, want, kind)
		require.Equal(t, uint64(5+i), count)
	}
	_, _, err = far.read(far.tcp)
	require.Error(t, err)
	require.NoError(t, there.Close())
}
