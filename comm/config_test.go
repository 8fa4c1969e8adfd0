package comm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/efa"
)

// The device is bound where the rank waits for the others, unless that is anywhere, or
// the engine's config says something else.
func TestDeviceIsBoundToAddress(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		engine  *efa.Config
		want    string
	}{
		"none":           {"", nil, "127.0.0.1"},
		"an address":     {"198.51.100.1:0", nil, "198.51.100.1"},
		"a name":         {"localhost:7000", &efa.Config{}, "127.0.0.1"},
		"IPv6":           {"[2001:db8::1]:0", nil, "2001:db8::1"},
		"any":            {":0", nil, ""},
		"any of IPv4":    {"0.0.0.0:0", nil, ""},
		"any of IPv6":    {"[::]:0", nil, ""},
		"another":        {"198.51.100.1:0", &efa.Config{Source: "203.0.113.1"}, "203.0.113.1"},
		"an interface":   {"198.51.100.1:0", &efa.Config{Domains: []string{"eth0"}}, ""},
		"not a port":     {"198.51.100.1", nil, ""},
		"IPv6 of a link": {"[fe80::1%eth0]:0", nil, "fe80::1%eth0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Config{Size: 1, Address: c.address, Engine: c.engine}.withDefaults()
			require.NoError(t, err)
			require.Equal(t, c.want, got.Engine.Source)
		})
	}
}
