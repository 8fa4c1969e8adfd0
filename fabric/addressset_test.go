package fabric_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// setVector is an address vector with peers 0 to count-1, on a provider that
// has collectives.
func setVector(t *testing.T, count int) *fabric.AddressVector {
	t.Helper()
	_, d := domainOf(t, "tcp;ofi_rxm", fabric.Messages|fabric.TaggedMessages|fabric.Collectives)
	v := vectorOf(t, d)
	results, err := v.InsertSymmetric("127.0.0.1", 1, "4000", count)
	require.NoError(t, err)
	for i, r := range results {
		require.NoError(t, r.Err)
		require.EqualValues(t, i, r.Address)
	}
	return v
}

func setOf(t *testing.T, v *fabric.AddressVector, members ...fabric.Address) *fabric.AddressSet {
	t.Helper()
	s, err := v.OpenSet(fabric.AddressSetConfig{Members: members})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestAddressSet(t *testing.T) {
	v := setVector(t, 8)
	type members = []fabric.Address
	for _, c := range []struct {
		name                string
		a, b                members
		union, common, rest members
	}{
		{"apart", members{0, 1}, members{2, 3}, members{0, 1, 2, 3}, nil, members{0, 1}},
		{"crossed", members{1, 2, 3}, members{3, 2, 5}, members{1, 2, 3, 5}, members{2, 3}, members{1}},
		{"same in reverse", members{4, 5, 6}, members{6, 5, 4}, members{4, 5, 6}, members{4, 5, 6}, nil},
		{"empty", nil, members{7}, members{7}, nil, nil},
		{"with nothing", members{7, 0}, nil, members{7, 0}, nil, members{7, 0}},
		{"part in front", members{6, 5, 4, 3}, members{6, 5}, members{6, 5, 4, 3}, members{6, 5}, members{4, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := setOf(t, v, c.b...)
			s := setOf(t, v, c.a...)
			require.NoError(t, s.Union(other))
			require.ElementsMatch(t, c.union, s.Members())
			require.Equal(t, c.union, s.Members())
			s = setOf(t, v, c.a...)
			require.NoError(t, s.Intersect(other))
			require.Equal(t, c.common, append(members(nil), s.Members()...))
			s = setOf(t, v, c.a...)
			require.NoError(t, s.Diff(other))
			require.Equal(t, c.rest, append(members(nil), s.Members()...))
			// What libfabric has is what Members says: each is there once, and
			// no other.
			for peer := fabric.Address(0); peer < 8; peer++ {
				if err := s.Remove(peer); err == nil {
					require.Contains(t, c.rest, peer)
				} else {
					require.ErrorIs(t, err, fabric.ErrNotFound)
					require.NotContains(t, c.rest, peer)
				}
			}
			require.Empty(t, s.Members())
			address, err := s.Address()
			require.NoError(t, err)
			require.NotEqual(t, fabric.AddressAny, address)
		})
	}
}

func TestAddressSetKeepsOrder(t *testing.T) {
	s := setOf(t, setVector(t, 6), 5, 3, 1, 0, 2)
	require.NoError(t, s.Remove(3))
	require.Equal(t, []fabric.Address{5, 1, 0, 2}, s.Members())
	require.NoError(t, s.Insert(4))
	require.NoError(t, s.Remove(5))
	require.Equal(t, []fabric.Address{1, 0, 2, 4}, s.Members())
}

func TestAddressSetRefuses(t *testing.T) {
	v := setVector(t, 4)
	s := setOf(t, v, 0, 1)
	require.ErrorIs(t, s.Insert(1), fabric.ErrInvalid)
	require.ErrorIs(t, s.Insert(4), fabric.ErrNotFound)
	require.ErrorIs(t, s.Remove(3), fabric.ErrNotFound)
	require.ErrorIs(t, s.Union(nil), fabric.ErrInvalid)
	require.ErrorIs(t, s.Union(setOf(t, setVector(t, 2), 0)), fabric.ErrInvalid, "of another vector")
	_, err := v.OpenSet(fabric.AddressSetConfig{Members: []fabric.Address{0, 0}})
	require.ErrorIs(t, err, fabric.ErrInvalid)
	_, err = v.OpenSet(fabric.AddressSetConfig{Members: []fabric.Address{0, 1}, Capacity: 1})
	require.ErrorIs(t, err, fabric.ErrInvalid)
	_, err = v.OpenSet(fabric.AddressSetConfig{Capacity: -1})
	require.ErrorIs(t, err, fabric.ErrInvalid)
	small, err := v.OpenSet(fabric.AddressSetConfig{Members: []fabric.Address{0}, Capacity: 1})
	require.NoError(t, err)
	require.ErrorIs(t, small.Insert(1), fabric.ErrInvalid)
	require.ErrorIs(t, small.Union(s), fabric.ErrInvalid)
	require.Equal(t, []fabric.Address{0}, small.Members())
	require.ErrorIs(t, v.Close(), fabric.ErrBusy)
	require.NoError(t, small.Close())
	require.NoError(t, small.Close())
	require.ErrorIs(t, small.Insert(1), net.ErrClosed)
	require.ErrorIs(t, s.Union(small), net.ErrClosed)
	_, err = small.Address()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestAddressSetNotSupported(t *testing.T) {
	for _, provider := range []string{"sockets", "shm"} {
		t.Run(provider, func(t *testing.T) {
			_, d := domainOf(t, provider, fabric.Messages|fabric.TaggedMessages)
			_, err := vectorOf(t, d).OpenSet(fabric.AddressSetConfig{})
			require.ErrorIs(t, err, fabric.ErrNotSupported)
		})
	}
}
