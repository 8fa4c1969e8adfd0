package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// makeCertificates writes NAME-ca.pem, an authority, and NAME.pem with
// NAME-key.pem, a certificate of it for 127.0.0.1.
func makeCertificates(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ts.Check(err)
		authority := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
		der, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
		ts.Check(err)
		writePEM(ts, name+"-ca.pem", "CERTIFICATE", der)

		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		ts.Check(err)
		certificate := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		der, err = x509.CreateCertificate(rand.Reader, certificate, authority, key.Public(), authorityKey)
		ts.Check(err)
		writePEM(ts, name+".pem", "CERTIFICATE", der)
		der, err = x509.MarshalPKCS8PrivateKey(key)
		ts.Check(err)
		writePEM(ts, name+"-key.pem", "PRIVATE KEY", der)
	}
}

func writePEM(ts *testscript.TestScript, name, kind string, der []byte) {
	ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
