package efa

import (
	"crypto/tls"
	"net"
	"strings"
)

// protocolName is what the two sides call weft among the protocols of TLS
// (ALPN), so that neither is taken for a server or a client of another one.
const protocolName = "weft"

// serverTLS is the TLS configuration of a listener, nil for none.
func (c *Config) serverTLS() (*tls.Config, error) {
	if c.TLS == nil {
		return nil, nil
	}
	if len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil {
		return nil, &ConfigError{Field: "TLS", Detail: "a listener needs a certificate: set Certificates, GetCertificate or GetConfigForClient"}
	}
	config := c.TLS.Clone()
	config.NextProtos = []string{protocolName}
	return config, nil
}

// clientTLS is the TLS configuration for dialing an address, nil for none.
func (c *Config) clientTLS(address string) *tls.Config {
	if c.TLS == nil {
		return nil
	}
	config := c.TLS.Clone()
	config.NextProtos = []string{protocolName}
	// Proofs of a key are bound to a session that stays what it is.
	config.Renegotiation = tls.RenegotiateNever
	if config.ServerName == "" {
		host, _, _ := net.SplitHostPort(address)
		// Certificates know nothing of zones.
		host, _, _ = strings.Cut(host, "%")
		if host == "" {
			host = "localhost" // as in dialing
		}
		config.ServerName = host
	}
	return config
}
