package efa

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificates makes the two sides of TLS for a server called name.
func certificates(t *testing.T, name string) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return server, &tls.Config{RootCAs: pool, ServerName: name}
}

// crypto/tls runs over a stream, with its own half-close.
func TestTLS(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.streams(t, Config{})
		serverConfig, clientConfig := certificates(t, "weft.test")
		client, server := tls.Client(dialed, clientConfig), tls.Server(accepted, serverConfig)
		content := message(1, 1, 2<<20)

		echoed := make(chan error)
		go func() {
			// The server's handshake is that of its first read.
			_, err := io.Copy(server, server)
			echoed <- errors.Join(err, server.CloseWrite())
		}()
		require.NoError(t, client.HandshakeContext(deadline(t)))
		require.NotEmpty(t, client.ConnectionState().VerifiedChains)
		written := make(chan error)
		go func() {
			_, err := client.Write(content)
			written <- errors.Join(err, client.CloseWrite())
		}()
		got, err := io.ReadAll(client)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got))
		require.NoError(t, <-written)
		require.NoError(t, <-echoed)

		closed := make(chan error)
		go func() { closed <- client.Close() }()
		require.NoError(t, server.Close())
		require.NoError(t, <-closed)
		_, err = dialed.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// A client that does not trust the server ends its handshake, and the streams
// are closed like any.
func TestTLSRefused(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		dialed, accepted := b.streams(t, Config{})
		serverConfig, clientConfig := certificates(t, "weft.test")
		clientConfig.ServerName = "other.test"
		server := tls.Server(accepted, serverConfig)
		refused := make(chan error)
		go func() { refused <- server.HandshakeContext(deadline(t)) }()
		var wrong *tls.CertificateVerificationError
		require.ErrorAs(t, tls.Client(dialed, clientConfig).HandshakeContext(deadline(t)), &wrong)
		require.Error(t, <-refused)
		closeStreams(t, dialed, accepted)
	})
}
