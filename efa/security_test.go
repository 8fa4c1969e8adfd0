package efa

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric/fabrictest"
)

// testKey is a key, and testKey(1) another one.
func testKey(i byte) []byte { return bytes.Repeat([]byte{i, 0xa5}, 16) }

// authority is a certificate authority for tests.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	require.NoError(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue makes a certificate for 127.0.0.1.
func (a *authority) issue(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) server(t testing.TB) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t)}}
}

func (a *authority) client() *tls.Config { return &tls.Config{RootCAs: a.pool()} }

// meeting is how a handshake ended on both sides.
type meeting struct {
	dialed, accepted   *Conn
	dialErr, acceptErr error
}

// meet has one reactor dial the other, without a listener around.
func meet(t *testing.T, from, to *Reactor) (m meeting) {
	t.Helper()
	secure, err := to.config.serverTLS()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		tcp, err := l.Accept()
		if err != nil {
			m.acceptErr = err
			return
		}
		m.accepted, m.acceptErr = to.accept(deadline(t), newOpening(tcp), secure)
	}()
	m.dialed, m.dialErr = from.Dial(deadline(t), l.Addr().String())
	<-accepted
	return m
}

// patient keeps a test from passing because a time limit passed.
func patient(c Config) Config {
	c.HelloTimeout, c.HandshakeTimeout = time.Hour, time.Hour
	return c
}

// What two sides agree on works to the orderly end, and what they do not agree
// on is told to both at once.
func TestWhoMayConnect(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	mutual := a.server(t)
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	known := a.client()
	known.Certificates = []tls.Certificate{a.issue(t)}
	old := a.client()
	old.MaxVersion = tls.VersionTLS12
	for _, test := range []struct {
		name     string
		from, to Config
		want     error // nil: they agree
		dialer   string
		listener string
	}{
		{name: "neither"},
		{name: "the same key", from: Config{Key: testKey(0)}, to: Config{Key: testKey(0)}},
		{name: "TLS", from: Config{TLS: a.client()}, to: Config{TLS: a.server(t)}},
		{name: "TLS with certificates of both", from: Config{TLS: known}, to: Config{TLS: mutual}},
		{name: "TLS 1.2", from: Config{TLS: old}, to: Config{TLS: a.server(t)}},
		{name: "both", from: Config{Key: testKey(0), TLS: a.client()}, to: Config{Key: testKey(0), TLS: a.server(t)}},
		{name: "both, TLS 1.2", from: Config{Key: testKey(0), TLS: old}, to: Config{Key: testKey(0), TLS: a.server(t)}},
		{
			name: "another key", from: Config{Key: testKey(0)}, to: Config{Key: testKey(1)},
			want: ErrUnauthorized, dialer: "the proof of the key is wrong", listener: "the proof of the key is wrong",
		},
		{
			name: "a longer key", from: Config{Key: append(testKey(0), 0)}, to: Config{Key: testKey(0)},
			want: ErrUnauthorized, dialer: "the proof of the key is wrong", listener: "the proof of the key is wrong",
		},
		{
			name: "a key for the listener only", to: Config{Key: testKey(0)},
			want: ErrUnauthorized, dialer: "the listener requires a key", listener: "the listener requires a key",
		},
		{
			name: "a key for the dialer only", from: Config{Key: testKey(0)},
			want: ErrUnauthorized, dialer: "the dialer requires a key", listener: "the dialer requires a key",
		},
		{
			name: "TLS at the listener only", to: Config{TLS: a.server(t)},
			want: ErrTLS, dialer: "the listener requires it, and the dialer does not use it", listener: "the listener requires it",
		},
		{
			name: "TLS at the dialer only", from: Config{TLS: a.client()},
			want: ErrTLS, dialer: "the dialer uses it, and the listener does not", listener: "the dialer uses it",
		},
		{
			name: "TLS at the dialer, a key at the listener", from: Config{TLS: a.client()}, to: Config{Key: testKey(0)},
			want: ErrTLS, dialer: "the dialer uses it, and the listener does not", listener: "the dialer uses it",
		},
		{
			name: "a certificate of nobody known", from: Config{TLS: other.client()}, to: Config{TLS: a.server(t)},
			want: ErrTLS, dialer: "certificate signed by unknown authority", listener: "bad certificate",
		},
		{
			name: "a dialer without a certificate", from: Config{TLS: a.client()}, to: Config{TLS: mutual},
			want: ErrTLS, dialer: "certificate required", listener: "didn't provide a certificate",
		},
		{
			name: "both, with another key", from: Config{Key: testKey(0), TLS: a.client()}, to: Config{Key: testKey(1), TLS: a.server(t)},
			want: ErrUnauthorized, dialer: "the proof of the key is wrong", listener: "the proof of the key is wrong",
		},
		{
			name: "both, without the key", from: Config{TLS: a.client()}, to: Config{Key: testKey(1), TLS: a.server(t)},
			want: ErrUnauthorized, dialer: "the listener requires a key", listener: "the listener requires a key",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, plain)
			from, to := b.open(t, patient(test.from)), b.open(t, patient(test.to))
			m := meet(t, from, to)
			if test.want == nil {
				require.NoError(t, m.dialErr)
				require.NoError(t, m.acceptErr)
				talk(t, m.dialed, m.accepted)
				closeBoth(t, m.dialed, m.accepted)
				return
			}
			for _, side := range []struct {
				err  error
				text string
			}{{m.dialErr, test.dialer}, {m.acceptErr, test.listener}} {
				require.ErrorIs(t, side.err, test.want)
				require.ErrorIs(t, side.err, ErrHandshake)
				require.ErrorContains(t, side.err, side.text)
			}
			require.Zero(t, from.Stats().Connections)
			require.Zero(t, to.Stats().Connections)
		})
	}
}

// talk sends something both ways.
func talk(t *testing.T, a, b *Conn) {
	t.Helper()
	buf := make([]byte, 10000)
	for i, size := range []int{5, 10000} {
		for j, pair := range [][2]*Conn{{a, b}, {b, a}} {
			require.NoError(t, pair[0].WriteMessage(deadline(t), message(i, j, size)))
			n, err := pair[1].ReadMessage(deadline(t), buf)
			require.NoError(t, err)
			require.Equal(t, message(i, j, size), buf[:n])
		}
	}
}

// Key and TLS carry a connection over real providers as well, from Listen and
// Dial to the end that only one side asks for.
func TestKeyAndTLSOnEachProvider(t *testing.T) {
	a := newAuthority(t)
	for _, s := range fabrictest.OnProviders() {
		t.Run(s.Name, func(t *testing.T) {
			newBed(t, s)
			ctx := deadline(t)
			l, err := Listen(ctx, "127.0.0.1:0", &Config{Providers: []string{s.Provider}, Logger: quiet, Key: testKey(0), TLS: a.server(t)})
			require.NoError(t, err)
			dialed, err := Dial(ctx, l.Addr().String(), &Config{Providers: []string{s.Provider}, Logger: quiet, Key: testKey(0), TLS: a.client()})
			require.NoError(t, err)
			accepted, err := l.AcceptConn(ctx)
			require.NoError(t, err)
			require.NoError(t, l.Close())
			talk(t, dialed, accepted)
			require.NoError(t, dialed.WriteMessage(ctx, []byte("last")))
			closed := make(chan error)
			go func() { closed <- dialed.Close() }()
			buf := make([]byte, 10)
			n, err := accepted.ReadMessage(ctx, buf)
			require.NoError(t, err)
			require.Equal(t, "last", string(buf[:n]))
			require.NoError(t, accepted.Close())
			require.NoError(t, <-closed)
		})
	}
}

func TestSecurityConfigErrors(t *testing.T) {
	for _, key := range [][]byte{{}, make([]byte, 15)} {
		_, err := Open(&Config{Key: key})
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Key", wrong.Field)
		require.ErrorContains(t, err, "at least 16")
	}
	_, err := Listen(t.Context(), "127.0.0.1:0", &Config{TLS: &tls.Config{}, Logger: quiet})
	var wrong *ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "TLS", wrong.Field)
	b := newBed(t, plain)
	r := b.open(t, Config{TLS: &tls.Config{}})
	_, err = r.Listen(t.Context(), "127.0.0.1:0")
	require.ErrorAs(t, err, &wrong)
}

// Changing the key that was configured does not change the one that is used.
func TestKeyIsCopied(t *testing.T) {
	b := newBed(t, plain)
	key := testKey(0)
	from, to := b.open(t, Config{Key: key}), b.open(t, Config{Key: testKey(0)})
	clear(key)
	one, other := join(t, from, to)
	closeBoth(t, one, other)
}

func TestServerName(t *testing.T) {
	for address, want := range map[string]string{
		"example.org:7465":    "example.org",
		"127.0.0.1:1":         "127.0.0.1",
		"[fe80::1%eth0]:7465": "fe80::1",
		":7465":               "localhost",
	} {
		c := &Config{TLS: &tls.Config{}}
		require.Equal(t, want, c.clientTLS(address).ServerName)
		require.Empty(t, c.TLS.ServerName, "the caller's configuration is left alone")
	}
	require.Equal(t, "set", (&Config{TLS: &tls.Config{ServerName: "set"}}).clientTLS("host:1").ServerName)
	require.Nil(t, (&Config{}).clientTLS("host:1"))
}

// A peer that is TLS but not weft is told apart.
func TestDialOtherTLSServer(t *testing.T) {
	a := newAuthority(t)
	config := a.server(t)
	config.NextProtos = []string{"h2"}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	defer l.Close()
	served := make(chan error)
	go func() {
		tcp, err := l.Accept()
		if err == nil {
			err = tcp.(*tls.Conn).HandshakeContext(context.Background())
			tcp.Close()
		}
		served <- err
	}()
	b := newBed(t, plain)
	r := b.open(t, patient(Config{TLS: a.client()}))
	_, err = r.Dial(deadline(t), l.Addr().String())
	require.ErrorIs(t, err, ErrTLS)
	require.ErrorContains(t, err, "no application protocol")
	require.Error(t, <-served)
}
