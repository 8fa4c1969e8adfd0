package efa

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A reactor that is told its address has an endpoint there, and one that cannot says so.
func TestSource(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		if b.Provider == "" {
			return
		}
		r, err := Open(&Config{Providers: []string{b.Provider}, Require: true, Source: "127.0.0.1", Logger: quiet})
		require.NoError(t, err)
		at := udpAddress(r.LocalAddress())
		require.NoError(t, r.Close())
		if b.Provider != "sockets" && b.Provider != "tcp" {
			// It has no IP addresses.
			require.Nil(t, at)
			return
		}
		require.Equal(t, "127.0.0.1", at.IP.String())
		_, err = Open(&Config{Providers: []string{b.Provider}, Require: true, Source: "192.0.2.1", Logger: quiet})
		var choice *fabric.ChoiceError
		require.ErrorAs(t, err, &choice)
		require.ErrorContains(t, err, "192.0.2.1")
	})
}
