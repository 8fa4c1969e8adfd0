package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weft-go/weft/efa"
)

// securityFlags say who may connect.
type securityFlags struct {
	KeyFile string `placeholder:"FILE" env:"WEFT_KEY_FILE" help:"A file with the secret that both sides must have, such as head -c 32 /dev/urandom | base64 makes."`
	TLSCert string `name:"tls-cert" placeholder:"FILE" env:"WEFT_TLS_CERT" help:"This side's certificate, PEM. The control connection is TLS if this or --tls-ca is given."`
	TLSKey  string `name:"tls-key" placeholder:"FILE" env:"WEFT_TLS_KEY" help:"The private key of --tls-cert, PEM."`
	TLSCA   string `name:"tls-ca" placeholder:"FILE" env:"WEFT_TLS_CA" help:"Who the peer's certificate must be signed by, PEM. One who listens then wants a certificate of those who connect; one who connects takes the system's authorities without it."`
}

// check finds flags that do not go together. serving is for who listens.
func (f *securityFlags) check(serving bool) error {
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return &usageError{"--tls-cert and --tls-key go together"}
	case serving && f.TLSCA != "" && f.TLSCert == "":
		return &usageError{"--tls-ca needs --tls-cert and --tls-key where weft listens"}
	}
	return nil
}

// apply puts what the files hold into the engine's configuration.
func (f *securityFlags) apply(config *efa.Config, serving bool) error {
	var err error
	if f.KeyFile != "" {
		if config.Key, err = readKey(f.KeyFile); err != nil {
			return err
		}
	}
	if f.TLSCert == "" && f.TLSCA == "" {
		return nil
	}
	config.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	if f.TLSCert != "" {
		certificate, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
		if err != nil {
			return fmt.Errorf("cannot use --tls-cert %q with --tls-key %q: %w", f.TLSCert, f.TLSKey, err)
		}
		config.TLS.Certificates = []tls.Certificate{certificate}
	}
	if f.TLSCA == "" {
		return nil
	}
	authorities, err := os.ReadFile(f.TLSCA)
	if err != nil {
		return fmt.Errorf("cannot read --tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return fmt.Errorf("cannot use --tls-ca %q: there is no certificate in it", f.TLSCA)
	}
	if serving {
		config.TLS.ClientCAs, config.TLS.ClientAuth = pool, tls.RequireAndVerifyClientCert
	} else {
		config.TLS.RootCAs = pool
	}
	return nil
}

const (
	leastKey = 16 // bytes, as the engine has it
	mostKey  = 4096
)

// readKey reads a secret, without the end of its line.
func readKey(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read --key-file: %w", err)
	}
	defer file.Close()
	key, err := io.ReadAll(io.LimitReader(file, mostKey+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read --key-file: %w", err)
	}
	key = bytes.TrimRight(key, "\r\n")
	if len(key) < leastKey || len(key) > mostKey {
		return nil, fmt.Errorf("cannot use --key-file %q: a key has %d to %d bytes; head -c 32 /dev/urandom | base64 makes one", name, leastKey, mostKey)
	}
	return key, nil
}

// notLetIn says why one side does not let the other in, and what to do about
// it; empty if that is not the reason.
func notLetIn(address string, err error) string {
	var advice string
	switch {
	case errors.Is(err, efa.ErrUnauthorized):
		advice = "give the same --key-file to both sides"
	case errors.Is(err, efa.ErrTLS):
		advice = "compare --tls-cert, --tls-key and --tls-ca of both sides"
	default:
		return ""
	}
	var refused *efa.RefusedError
	if errors.As(err, &refused) {
		return fmt.Sprintf("%s refused the connection: %s; %s", address, refused.Reason, advice)
	}
	var ended *efa.ConnError
	if errors.As(err, &ended) && ended.Cause != nil {
		err = ended.Cause
	}
	return fmt.Sprintf("cannot connect to %s: %v; %s", address, err, advice)
}
