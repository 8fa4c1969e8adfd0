package efa

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/fabric/fabrictest"
)

var plain = setting{Name: "fake"}

func TestDialNothing(t *testing.T) {
	b := newBed(t, plain)
	r := b.open(t, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, err = r.Dial(deadline(t), address)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.ErrorIs(t, err, ErrHandshake)
	require.Zero(t, r.Stats().Connections)
}

func TestDialHTTPServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	b := newBed(t, plain)
	r := b.open(t, Config{})
	_, err := r.Dial(deadline(t), server.Listener.Addr().String())
	var not *NotWeftError
	require.ErrorAs(t, err, &not)
	require.Equal(t, "HTTP/1.1", string(not.Got))
	require.ErrorIs(t, err, ErrHandshake)
}

// A listener that accepts and says nothing is given up after the time allowed.
func TestDialSilence(t *testing.T) {
	b := newBed(t, plain)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	r := b.open(t, Config{HandshakeTimeout: 50 * time.Millisecond})
	_, err = r.Dial(deadline(t), l.Addr().String())
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
	require.ErrorIs(t, err, ErrHandshakeTimeout)
	require.ErrorIs(t, err, ErrHandshake)

	ctx, cancel := context.WithCancelCause(deadline(t))
	patient := b.open(t, Config{})
	why := io.ErrNoProgress
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	_, err = patient.Dial(ctx, l.Addr().String())
	require.ErrorIs(t, err, why)
}

func TestListenerSurvivesStrangers(t *testing.T) {
	b := newBed(t, plain)
	to, from := b.open(t, Config{MaxHandshakes: 4, HandshakeTimeout: 5 * time.Second}), b.open(t, Config{})
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	hello := appendFrame(nil, frameHello, nil)
	answer := appendFrame(nil, frameAnswer, from.terms(&Conn{id: 9}).encode())
	wrong := *from.terms(&Conn{id: 9})
	wrong.Address = []byte("not an address of this device")
	for name, sent := range map[string][]byte{
		"nothing":          nil,
		"HTTP":             []byte("GET / HTTP/1.1\r\nHost: weft\r\n\r\n"),
		"half a hello":     hello[:5],
		"wrong version":    append([]byte("weft\x09\x01"), 0, 0),
		"wrong frame":      appendFrame(nil, frameReady, nil),
		"huge frame":       append([]byte("weft\x02\x01"), 0xff, 0xff),
		"no answer":        hello,
		"half an answer":   append(append([]byte(nil), hello...), answer[:20]...),
		"empty answer":     appendFrame(hello, frameAnswer, nil),
		"foreign provider": appendFrame(hello, frameAnswer, (&terms{Provider: "other", Address: []byte{1}, Connection: 1, WindowMessages: 1, WindowBytes: 1, MaxMessage: 1, Piece: tiniestPiece}).encode()),
		"wrong address":    appendFrame(hello, frameAnswer, wrong.encode()),
	} {
		t.Run(name, func(t *testing.T) {
			tcp, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			_, err = tcp.Write(sent)
			require.NoError(t, err)
			_ = tcp.(*net.TCPConn).CloseWrite() // the listener may have been quicker
			require.NoError(t, tcp.SetReadDeadline(time.Now().Add(patience)))
			// The listener ends it, by closing or by a refusal that says why.
			_, err = io.Copy(io.Discard, tcp)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			require.NoError(t, tcp.Close())
		})
	}
	c, err := from.Dial(deadline(t), l.Addr().String())
	require.NoError(t, err)
	a, err := l.AcceptConn(deadline(t))
	require.NoError(t, err)
	closeBoth(t, c, a)
	require.NoError(t, l.Close())
	require.Zero(t, to.Stats().Connections)
}

// Peers that connect and never finish do not keep the listener from closing,
// and none of them is left.
func TestCloseListenerDuringHandshakes(t *testing.T) {
	b := newBed(t, plain)
	to := b.open(t, Config{MaxHandshakes: 8, HandshakeTimeout: time.Hour})
	l, err := to.Listen(deadline(t), "127.0.0.1:0")
	require.NoError(t, err)
	var opened []net.Conn
	for range 20 {
		tcp, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		opened = append(opened, tcp)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := l.AcceptConn(deadline(t)); !fabric.IsClosed(err) {
			t.Errorf("accept: %v", err)
		}
	})
	require.NoError(t, l.Close())
	waiting.Wait()
	for _, tcp := range opened {
		require.NoError(t, tcp.Close())
	}
	require.Zero(t, to.Stats().Connections)
	_, err = l.AcceptConn(deadline(t))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestRefusals(t *testing.T) {
	t.Run("too many connections", func(t *testing.T) {
		b := newBed(t, plain)
		to, from := b.open(t, Config{MaxConnections: 1}), b.open(t, Config{})
		one, other := join(t, from, to)
		l, err := to.Listen(deadline(t), "127.0.0.1:0")
		require.NoError(t, err)
		_, err = from.Dial(deadline(t), l.Addr().String())
		var refused *RefusedError
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.Reason, "too many connections: the limit is 1")
		closeBoth(t, one, other)
		// There is a place again.
		again, err := from.Dial(deadline(t), l.Addr().String())
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.NoError(t, again.CloseNow())
	})
	t.Run("another provider", func(t *testing.T) {
		one, two := newBed(t, plain), newBed(t, setting{Name: "other", Device: fabrictest.DeviceConfig{Provider: "other"}})
		to, from := one.open(t, Config{}), two.open(t, Config{})
		l, err := to.Listen(deadline(t), "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		_, err = from.Dial(deadline(t), l.Addr().String())
		require.ErrorIs(t, err, ErrHandshake)
		require.ErrorContains(t, err, "the peer uses provider fake, this side other")
		_, err = Dial(deadline(t), l.Addr().String(), &Config{Providers: []string{"tcp", "shm"}, Logger: quiet})
		require.ErrorContains(t, err, "the listener uses provider fake, and this side allows only tcp, shm")
	})
	t.Run("another layer", func(t *testing.T) {
		own := Config{Providers: []string{"tcp;"}, Logger: quiet}
		l, err := Listen(deadline(t), "127.0.0.1:0", &own)
		if fabric.LibraryVersion().Major < 2 {
			require.ErrorContains(t, err, "through utility layers only")
			return
		}
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		require.Equal(t, "tcp", l.Provider())
		layered := newBed(t, setting{Name: "tcp", Provider: "tcp"}).open(t, Config{})
		_, err = layered.Dial(deadline(t), l.Addr().String())
		require.ErrorContains(t, err, "the peer uses provider tcp, this side tcp;ofi_rxm")
		_, err = Dial(deadline(t), l.Addr().String(), &Config{Providers: []string{"tcp;ofi_rxm"}, Logger: quiet})
		require.ErrorContains(t, err, "the listener uses provider tcp, and this side allows only tcp;ofi_rxm")
		for _, name := range []string{"tcp", "tcp;"} {
			dialed, err := Dial(deadline(t), l.Addr().String(), &Config{Providers: []string{name}, Logger: quiet})
			require.NoError(t, err)
			require.Equal(t, "tcp", dialed.Provider())
			accepted, err := l.AcceptConn(deadline(t))
			require.NoError(t, err)
			closeBoth(t, dialed, accepted)
		}
	})
	t.Run("another host", func(t *testing.T) {
		b := newBed(t, plain)
		r := b.open(t, Config{})
		r.attributes.SameHostOnly = true
		c := r.newConn()
		theirs := *r.terms(&Conn{id: 1})
		theirs.Host = "somewhere else"
		require.ErrorIs(t, r.agree(c, &theirs), ErrHandshake)
		require.ErrorContains(t, r.agree(c, &theirs), "only processes of the same host")
	})
}

// What a peer of a later version can do as well is neither refused nor used.
func TestUnknownFeatures(t *testing.T) {
	b := newBed(t, plain)
	from, to := b.open(t, Config{}), b.open(t, Config{})
	theirs := from.terms(&Conn{id: 1})
	require.Equal(t, features, theirs.Features)
	theirs.Features = 1<<31 | featureGather
	got, err := decodeTerms(theirs.encode())
	require.NoError(t, err)
	require.Equal(t, *theirs, got)
	c := to.newConn()
	here, there := net.Pipe()
	defer there.Close()
	c.control = &control{tcp: here}
	require.NoError(t, to.enterTable(c))
	require.NoError(t, to.agree(c, &got))
	require.Equal(t, features&featureGather, c.features)
	to.withdraw(c)
}

func TestListenAndDialOwnTheirDevices(t *testing.T) {
	for _, s := range fabrictest.OnProviders() {
		t.Run(s.Name, func(t *testing.T) {
			newBed(t, s)
			ctx := deadline(t)
			config := &Config{Providers: []string{s.Provider}, Logger: quiet}
			for _, address := range []string{"127.0.0.1:0", ":0"} {
				if address == ":0" && (s.Provider == "sockets" || s.Provider == "tcp") {
					// Other interfaces come and go while other tests make networks.
					config.Domains = []string{"lo"}
				}
				l, err := Listen(ctx, address, config)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(l.Provider(), s.Provider))
				_, port, err := net.SplitHostPort(l.Addr().String())
				require.NoError(t, err)
				dialed, err := Dial(ctx, net.JoinHostPort("127.0.0.1", port), config)
				require.NoError(t, err)
				accepted, err := l.AcceptConn(ctx)
				require.NoError(t, err)
				require.NoError(t, l.Close())
				require.NoError(t, dialed.WriteMessage(ctx, []byte("after the listener has closed")))
				buf := make([]byte, 100)
				n, err := accepted.ReadMessage(ctx, buf)
				require.NoError(t, err)
				require.Equal(t, "after the listener has closed", string(buf[:n]))
				closeBoth(t, dialed, accepted)
				// The devices are gone with the connections.
				require.Empty(t, fabric.OpenHandles())
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	for field, c := range map[string]Config{
		"MaxMessage":       {MaxMessage: -1},
		"WindowMessages":   {WindowMessages: 1 << 20},
		"WindowBytes":      {WindowBytes: -4},
		"MaxConnections":   {MaxConnections: 1 << 20},
		"MaxHandshakes":    {MaxHandshakes: -1},
		"HandshakeTimeout": {HandshakeTimeout: -1},
		"PeerTimeout":      {PeerTimeout: -1},
		"DrainTimeout":     {DrainTimeout: -1},
		"EagerLimit":       {EagerLimit: 1 << 20},
	} {
		_, err := Open(&c)
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong, field)
		require.Equal(t, field, wrong.Field)
	}
	for _, timeout := range []time.Duration{1, 3999 * time.Millisecond, 24*time.Hour + 1} {
		_, err := (&Config{PeerTimeout: timeout}).withDefaults()
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong, "the system's keep-alives cannot do that: %v", timeout)
		require.Equal(t, "PeerTimeout", wrong.Field)
	}
	_, err := Listen(t.Context(), "127.0.0.1:0", &Config{Providers: []string{"nonesuch"}, Logger: quiet})
	var choice *fabric.ChoiceError
	require.ErrorAs(t, err, &choice)
	require.ErrorIs(t, err, fabric.ErrNotFound)
	_, err = Listen(t.Context(), "not an address", nil)
	var address *net.AddrError
	require.ErrorAs(t, err, &address)
}

func FuzzReadFrame(f *testing.F) {
	f.Add(appendFrame(nil, frameHello, nil))
	f.Add(appendFrame(nil, frameRefusal, []byte("no\x1b[31m")))
	f.Add([]byte("HTTP/1.1 400 Bad Request"))
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, body, err := readFrame(bytes.NewReader(b), frameHello, frameAnswer)
		if err != nil {
			return
		}
		again := appendFrame(nil, kind, body)
		if !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("%x was read as %x", b, again)
		}
	})
}

func FuzzDecodeTerms(f *testing.F) {
	f.Add((&terms{Provider: "tcp;ofi_rxm", Host: "abc", Address: []byte{2, 0, 1, 2}, Connection: 7, EagerLimit: 4096, WindowMessages: 64, WindowBytes: 1 << 22, MaxMessage: 1 << 30, Piece: 1 << 20, Features: featureGather | featurePieces}).encode())
	f.Add([]byte{})
	f.Add([]byte{200, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeTerms(b)
		if err != nil {
			return
		}
		if !bytes.Equal(got.encode(), b) {
			t.Fatalf("%x was read as %+v", b, got)
		}
	})
}
