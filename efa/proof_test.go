package efa

import (
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/internal/proof"
)

// What goes over the wire stays as it was: peers of other versions reckon it too.
func TestProofsOnTheWire(t *testing.T) {
	s := newSession(testKey(1), []byte("hello"), []byte("challenge"), nil)
	sealed := s.Seal(offerLabel, []byte("terms"), []byte("before"))
	require.Equal(t, "e087c60eac9445ada8db64f7dd83d41a6aa1fc944384b30f0122bed6d8bc013c", hex.EncodeToString(sealed[:proof.Size]))
	require.Equal(t, "terms", string(sealed[proof.Size:]))
	over := newSession(testKey(1), []byte("hello"), []byte("challenge"), []byte("tls"))
	sealed = over.Seal(offerLabel, []byte("terms"), []byte("before"))
	require.Equal(t, "f4adf18f3082e00ee2764f1a84f2e44750f8477255a5dc833e33ddadd2f44cc5", hex.EncodeToString(sealed[:proof.Size]))

	dialer, listener := s.Frames()
	for i, want := range []struct{ dialer, listener string }{
		{"866f6d2c6493b9ab66964d88dad4948bda0bdb3c538a9590d9790417ce7b0144", "3213870add16be54aa7014b9e54173f8b998c98b1d265bf5bf326b70d3019873"},
		{"9cece8aad456fec6564e8bbfe71a56eb28a3c0a0762cc1d3dcd4f480740907a4", "cfaea38f169da89c5dd1f165d024902a275d81467c5d07cf94d67ee130e26295"},
	} {
		require.Equal(t, want.dialer, hex.EncodeToString(dialer.Next([]byte("body"), byte(frameFinish))), "%d", i)
		require.Equal(t, want.listener, hex.EncodeToString(listener.Next([]byte("body"), byte(frameFinish))), "%d", i)
	}
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
