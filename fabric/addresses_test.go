package fabric_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// domainOf opens a domain of a provider on this machine, for reliable datagrams
// with the capabilities.
func domainOf(t *testing.T, provider string, capabilities fabric.Capabilities) (*fabric.Fabric, *fabric.Domain) {
	t.Helper()
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: capabilities, MemoryMode: everyMode,
		Source: sourceOn(provider), OneThread: true,
	}
	infos, err := fabric.Discover(hints)
	testenv.Need(t, provider+" with "+capabilities.String(), err)
	return partsOf(t, infos[0])
}

// namesOf are the addresses of as many new ports.
func namesOf(t *testing.T, provider string, count int) [][]byte {
	t.Helper()
	names := make([][]byte, count)
	for i := range names {
		names[i] = open(t, provider, fabric.PortConfig{}).LocalAddress()
	}
	return names
}

func TestAddressVectorConfig(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		name := namesOf(t, provider, 1)[0]
		_, d := domainOf(t, provider, fabric.Messages|fabric.TaggedMessages)
		v, err := d.OpenAddressVectorConfig(fabric.AddressVectorConfig{Peers: 100, PeersPerNode: 4})
		require.NoError(t, err)
		peer, err := v.Insert(name)
		require.NoError(t, err)
		require.Zero(t, peer, "a table counts from 0")
		require.NoError(t, v.Close())
		_, err = v.Lookup(peer)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = v.InsertAll([][]byte{name})
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = d.OpenAddressVectorConfig(fabric.AddressVectorConfig{ReceiveBits: 64})
		require.ErrorIs(t, err, fabric.ErrInvalid)
		_, err = d.OpenAddressVectorConfig(fabric.AddressVectorConfig{ReceiveBits: -1})
		require.ErrorIs(t, err, fabric.ErrInvalid)
	})
}

// The calls of libfabric 2.x say so on an older one, and on providers that do
// not have them.
func TestAuthorizationKeys(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		name := namesOf(t, provider, 1)[0]
		_, d := domainOf(t, provider, fabric.Messages|fabric.TaggedMessages)
		v := vectorOf(t, d)
		peer, err := v.Insert(name)
		require.NoError(t, err)
		_, err = v.InsertKey([]byte("key"))
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		_, err = v.InsertKey(nil)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		_, err = v.LookupKey(peer)
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		_, err = v.LookupKey(peer + 1)
		require.ErrorIs(t, err, fabric.ErrNotFound)
		require.ErrorIs(t, v.SetUserID(peer, 7), fabric.ErrNotSupported)
		require.ErrorIs(t, v.SetUserID(peer+1, 7), fabric.ErrNotFound)
	})
	if fabric.HeaderVersion().Major < 2 {
		require.EqualValues(t, 5, fabric.Address(5).InGroup(1))
	} else {
		require.EqualValues(t, 1<<32|5, fabric.Address(5).InGroup(1))
	}
}
