package efa

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
)

// What package net promises of a net.Conn.
func TestNetConn(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		from, to := b.open(t, Config{}), b.open(t, Config{})
		l, err := to.Listen(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		nettest.TestConn(t, func() (dialed, accepted net.Conn, stop func(), err error) {
			if dialed, err = from.DialContext(deadline(t), "tcp", l.Addr().String()); err != nil {
				return nil, nil, nil, err
			}
			if accepted, err = l.Accept(); err != nil {
				return nil, nil, nil, err
			}
			return dialed, accepted, func() {
				dialed.Close()
				accepted.Close()
			}, nil
		})
	})
}
