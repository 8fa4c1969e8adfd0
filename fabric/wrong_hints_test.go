package fabric_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// Hints that cannot be are refused where they are given, for what comes of them is taken, and
// cannot be used or closed.
func TestWrongHints(t *testing.T) {
	ip := []byte{2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	for what, h := range map[string]fabric.Hints{
		"no such vector":          {AddressVector: 3},
		"short destination":       {Provider: "sockets", DestinationAddress: ip[:14]},
		"one byte":                {Provider: "tcp;", SourceAddress: ip[:1]},
		"no family":               {Provider: "tcp;ofi_rxm", DestinationAddress: make([]byte, 16)},
		"long source":             {AddressFormat: fabric.FormatIPv4, SourceAddress: append(ip[:16:16], 0)},
		"the length of the other": {AddressFormat: fabric.FormatSocket, DestinationAddress: append([]byte{10, 0}, make([]byte, 14)...)},
	} {
		_, err := fabric.Discover(h)
		require.ErrorIs(t, err, fabric.ErrInvalid, what)
	}
	for _, provider := range []string{"sockets", "tcp"} {
		_, err := fabric.Discover(fabric.Hints{Provider: provider, DestinationAddress: ip})
		require.NoError(t, err)
	}
}

// An address says of which family it is, so that what is found with it works, and can be closed.
func TestAddressesWithoutFormat(t *testing.T) {
	v4 := []byte{2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	v6 := append([]byte{10, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 20)...)
	v6[23] = 1
	for _, provider := range []string{"sockets", "tcp"} {
		for what, h := range map[string]fabric.Hints{
			"source": {SourceAddress: v4}, "destination": {DestinationAddress: v4}, "destination of IPv6": {DestinationAddress: v6},
			"none": {AddressFormat: fabric.FormatSocket}, "either": {AddressFormat: fabric.FormatSocket, SourceAddress: v4},
		} {
			h.Provider, h.Endpoint = provider, fabric.ReliableDatagram
			h.Capabilities, h.MemoryMode = fabric.Messages, everyMemoryMode
			infos, err := fabric.Discover(h)
			require.NoError(t, err, what)
			wanted := fabric.FormatIPv4
			if h.DestinationAddress != nil && len(h.DestinationAddress) == len(v6) {
				wanted = fabric.FormatIPv6
			}
			require.Equal(t, wanted, infos[0].AddressFormat(), what)
			c := openCorner(t, infos[0])
			c.endpoint(t, infos[0], fabric.Bindings{Events: c.events})
		}
	}
}

// Of two families, too.
func TestAddressesOfTwoFamilies(t *testing.T) {
	v4 := []byte{2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	v6 := append([]byte{10, 0}, make([]byte, 26)...)
	v6[23] = 1
	for _, provider := range []string{"sockets", "tcp", "^shm", "^tcp,shm"} {
		for _, h := range []fabric.Hints{{SourceAddress: v4, DestinationAddress: v6}, {SourceAddress: v6, DestinationAddress: v4}} {
			h.Provider = provider
			infos, err := fabric.Discover(h)
			for _, i := range infos {
				require.NotContains(t, []string{"sockets", "tcp", "tcp;ofi_rxm", "udp", "udp;ofi_rxd"}, i.Provider())
			}
			if len(infos) == 0 {
				require.ErrorIs(t, err, fabric.ErrInvalid)
			}
		}
	}
}

// What is no address of sockets has none of their providers found, whatever else is.
func TestMisfitAddresses(t *testing.T) {
	for _, length := range []int{2, 4, 16, 200} {
		address := bytes.Repeat([]byte{0x41}, length)
		for _, h := range []fabric.Hints{
			{Provider: "^shm", SourceAddress: address}, {Provider: "^shm", DestinationAddress: address}, {Provider: ";", SourceAddress: address},
		} {
			infos, err := fabric.Discover(h)
			if err != nil {
				require.ErrorIs(t, err, fabric.ErrInvalid)
			}
			for _, i := range infos {
				require.NotContains(t, []string{"sockets", "tcp", "tcp;ofi_rxm", "udp", "udp;ofi_rxd"}, i.Provider())
			}
		}
	}
}

// An endpoint that was not enabled can be closed, whatever type of vectors its domain has.
func TestCloseOfUnboundEndpointOfMaps(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		infos, err := fabric.Discover(fabric.Hints{
			Provider: provider, Endpoint: fabric.ReliableDatagram, Source: sourceOn(provider), AddressVector: fabric.AddressMap,
			MemoryMode: everyMemoryMode, Capabilities: fabric.Messages,
		})
		testenv.Need(t, "maps of addresses on "+provider, err)
		for _, info := range infos {
			_, d := partsOf(t, info)
			e, err := d.OpenEndpoint()
			require.NoError(t, err)
			require.NoError(t, e.Close())
		}
	})
}

// The zero value of an error can be looked at.
func TestZeroConnectionError(t *testing.T) {
	err := &fabric.ConnectionError{}
	require.NotErrorIs(t, err, fabric.ErrInvalid)
	require.NoError(t, err.Unwrap())
	require.NotEmpty(t, err.Error())
}

// A name without a letter is no address on shm.
func TestEmptyNameIsNoAddress(t *testing.T) {
	a, _ := stations(t, "shm", fabric.Messages)
	for _, address := range [][]byte{{0}, {0, 0, 0}} {
		_, err := a.v.Text(address)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		_, err = a.v.Insert(address)
		require.ErrorIs(t, err, fabric.ErrInvalid)
	}
}
