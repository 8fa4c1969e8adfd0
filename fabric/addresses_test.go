package fabric_test

import (
	"bytes"
	"errors"
	"net"
	"strconv"
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
		Source: "127.0.0.1", OneThread: true,
	}
	infos, err := fabric.Discover(hints)
	testenv.Need(t, provider+" with "+capabilities.String(), err)
	f, err := infos[0].OpenFabric()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	d, err := f.OpenDomain(infos[0])
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return f, d
}

func vectorOf(t *testing.T, d *fabric.Domain) *fabric.AddressVector {
	t.Helper()
	v, err := d.OpenAddressVector()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	return v
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

func TestInsertAll(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		names := namesOf(t, provider, 5)
		_, d := domainOf(t, provider, fabric.Messages|fabric.TaggedMessages)
		v := vectorOf(t, d)
		require.Equal(t, fabric.AddressTable, v.Type())
		addresses := [][]byte{names[0], names[1], {1, 2, 3}, names[2], nil, names[3], names[4]}
		results, err := v.InsertAll(addresses)
		require.NoError(t, err)
		require.Len(t, results, len(addresses))
		seen := map[fabric.Address]bool{}
		var peers []fabric.Address
		for i, r := range results {
			if len(addresses[i]) < 4 {
				require.ErrorIs(t, r.Err, fabric.ErrInvalid)
				require.Equal(t, fabric.AddressAny, r.Address)
				continue
			}
			require.NoError(t, r.Err)
			require.False(t, seen[r.Address], "an address for each")
			seen[r.Address] = true
			peers = append(peers, r.Address)
			got, err := v.Lookup(r.Address)
			require.NoError(t, err)
			require.Equal(t, plain(addresses[i]), plain(got))
		}
		require.Equal(t, 5, v.Len())
		none, err := v.InsertAll(nil)
		require.NoError(t, err)
		require.Empty(t, none)

		require.ErrorIs(t, v.RemoveAll([]fabric.Address{peers[0], 99999}), fabric.ErrNotFound)
		require.ErrorIs(t, v.RemoveAll([]fabric.Address{peers[0], peers[0]}), fabric.ErrInvalid)
		require.Equal(t, 5, v.Len(), "none was removed")
		require.NoError(t, v.RemoveAll(nil))
		require.NoError(t, v.RemoveAll(peers[:3]))
		require.Equal(t, 2, v.Len())
		_, err = v.Lookup(peers[0])
		require.ErrorIs(t, err, fabric.ErrNotFound)
		require.ErrorIs(t, v.Remove(peers[0]), fabric.ErrNotFound)
		got, err := v.Lookup(peers[4])
		require.NoError(t, err)
		require.Equal(t, plain(names[4]), plain(got))
		again, err := v.Insert(names[0])
		require.NoError(t, err, "after its removal")
		got, err = v.Lookup(again)
		require.NoError(t, err)
		require.Equal(t, plain(names[0]), plain(got))
	})
}

// plain is an address without the scheme, which shm of libfabric 2.x does not
// give back.
func plain(address []byte) []byte {
	return bytes.TrimPrefix(address, []byte("fi_shm://"))
}

func TestAddressText(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		name := namesOf(t, provider, 1)[0]
		_, d := domainOf(t, provider, fabric.Messages|fabric.TaggedMessages)
		v := vectorOf(t, d)
		text, err := v.Text(name)
		if errors.Is(err, fabric.ErrNotSupported) {
			testenv.Need(t, provider+" with fi_av_straddr", err)
		}
		require.NoError(t, err)
		if provider == "shm" {
			require.Contains(t, text, string(name[:len(name)-1]))
		} else {
			require.Regexp(t, `127\.0\.0\.1:\d+$`, text)
		}
		_, err = v.Text([]byte{1})
		require.ErrorIs(t, err, fabric.ErrInvalid)
	})
}

func TestInsertService(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		_, d := domainOf(t, provider, fabric.Messages|fabric.TaggedMessages)
		v := vectorOf(t, d)
		for _, wrong := range [][2]string{{"", "4000"}, {"127.0.0.1", ""}} {
			_, err := v.InsertService(wrong[0], wrong[1])
			require.ErrorIs(t, err, fabric.ErrInvalid)
		}
		peer, err := v.InsertService("127.0.0.1", "4711")
		if provider == "shm" {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
			return
		}
		require.NoError(t, err)
		address, err := v.Lookup(peer)
		require.NoError(t, err)
		text, err := v.Text(address)
		require.NoError(t, err)
		require.Contains(t, text, "127.0.0.1:4711")
		_, err = v.InsertService("127.0.0.1", "no such service")
		require.Error(t, err)
		require.Equal(t, 1, v.Len())
	})
}

func TestInsertSymmetric(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		_, d := domainOf(t, provider, fabric.Messages|fabric.TaggedMessages)
		v := vectorOf(t, d)
		for _, counts := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {1 << 40, 1 << 40}, {1 << 20, 2}} {
			_, err := v.InsertSymmetric("127.0.0.1", counts[0], "4000", counts[1])
			require.ErrorIs(t, err, fabric.ErrInvalid)
		}
		results, err := v.InsertSymmetric("127.0.0.1", 2, "4000", 3)
		if errors.Is(err, fabric.ErrNotSupported) {
			require.Equal(t, "shm", provider)
			return
		}
		require.NoError(t, err)
		require.Len(t, results, 6)
		seen := map[string]bool{}
		for _, r := range results {
			require.NoError(t, r.Err)
			address, err := v.Lookup(r.Address)
			require.NoError(t, err)
			text, err := v.Text(address)
			require.NoError(t, err)
			seen[text[len(text)-len("127.0.0.1:4000"):]] = true
		}
		want := map[string]bool{}
		for host := 1; host <= 2; host++ {
			for service := 4000; service < 4003; service++ {
				want[net.JoinHostPort("127.0.0."+strconv.Itoa(host), strconv.Itoa(service))] = true
			}
		}
		require.Equal(t, want, seen)
	})
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
