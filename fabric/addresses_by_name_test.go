package fabric_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// textsOf are the addresses of peers in words, without the format.
func textsOf(t *testing.T, v *fabric.AddressVector, peers ...fabric.Inserted) (texts []string) {
	t.Helper()
	for _, peer := range peers {
		require.NoError(t, peer.Err)
		address, err := v.Lookup(peer.Address)
		require.NoError(t, err)
		text, err := v.Text(address)
		require.NoError(t, err)
		texts = append(texts, text[strings.LastIndex(text, "/")+1:])
	}
	return texts
}

// A service is a port, by number or name: what libfabric would cut off to another port, and
// a host that it would not read, are refused.
func TestInsertServiceThatIsNone(t *testing.T) {
	eachWithAddresses(t, func(t *testing.T, info *fabric.Info) {
		_, d := partsOf(t, info)
		v := vectorOf(t, d)
		for _, wrong := range []string{"-1", "0", "65536", "99999", "1x", "99999999999999999999", "no such service", strings.Repeat("1", 300)} {
			_, err := v.InsertService("127.0.0.1", wrong)
			require.ErrorIs(t, err, fabric.ErrInvalid, wrong)
			_, err = v.InsertSymmetric("127.0.0.1", 1, wrong, 1)
			require.ErrorIs(t, err, fabric.ErrInvalid, wrong)
		}
		_, err := v.InsertService(strings.Repeat("a", 4000), "1")
		require.ErrorIs(t, err, fabric.ErrInvalid)
		_, err = v.InsertService("300.1.1.1", "1")
		require.ErrorContains(t, err, `"300.1.1.1"`)
		require.Zero(t, v.Len())

		peer, err := v.InsertService("localhost", "http")
		require.NoError(t, err)
		require.Equal(t, []string{"127.0.0.1:80"}, textsOf(t, v, fabric.Inserted{Address: peer}))
	})
}

// Hosts and services count up as addresses and ports, by name too, and not past the last.
func TestInsertSymmetricCounts(t *testing.T) {
	eachWithAddresses(t, func(t *testing.T, info *fabric.Info) {
		_, d := partsOf(t, info)
		v := vectorOf(t, d)
		for _, wrong := range []struct {
			host     string
			hosts    int
			service  string
			services int
		}{
			{"127.0.0.1", 1, "65534", 3},
			{"255.255.255.255", 2, "1", 1},
			{"127.0.0.1", math.MaxInt, "1", math.MaxInt},
			{"127.0.0.1", -1, "1", -1},
		} {
			_, err := v.InsertSymmetric(wrong.host, wrong.hosts, wrong.service, wrong.services)
			require.ErrorIs(t, err, fabric.ErrInvalid, "%+v", wrong)
		}
		require.Zero(t, v.Len())
		peers, err := v.InsertSymmetric("127.0.0.255", 2, "65534", 2)
		require.NoError(t, err)
		require.Equal(t, []string{"127.0.0.255:65534", "127.0.0.255:65535", "127.0.1.0:65534", "127.0.1.0:65535"}, textsOf(t, v, peers...))
		peers, err = v.InsertSymmetric("localhost", 1, "http", 2)
		require.NoError(t, err)
		require.Equal(t, []string{"127.0.0.1:80", "127.0.0.1:81"}, textsOf(t, v, peers...))
	})
}

// A vector is not opened for more peers than there can be: providers that count them in
// their memory end the process.
func TestVectorOfTooManyPeers(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		_, d := partsOf(t, datagramsFor(t, provider, fabric.TaggedMessages))
		for _, c := range []fabric.AddressVectorConfig{
			{Peers: 1<<20 + 1}, {Peers: 1 << 63}, {PeersPerNode: math.MaxUint64}, {ReadOnly: true},
		} {
			_, err := d.OpenAddressVectorConfig(c)
			require.ErrorIs(t, err, fabric.ErrInvalid, "%+v", c)
		}
		v, err := d.OpenAddressVectorConfig(fabric.AddressVectorConfig{Peers: 256, PeersPerNode: 256})
		require.NoError(t, err)
		require.NoError(t, v.Close())
	})
}
