package fabric_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// A peer that was inserted twice is there until it has been removed twice, and can be inserted then.
func TestInsertTwice(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider == "sockets" {
			return // where it gets another address each time
		}
		info := datagramsFor(t, provider, fabric.TaggedMessages)
		c := openCorner(t, info)
		a, v := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		b, other := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		third, its := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		insert(t, other, a.e)
		insert(t, its, a.e)
		for range 3 {
			peer := insert(t, v, b.e)
			require.Equal(t, peer, insert(t, v, b.e))
			name, err := b.e.Name()
			require.NoError(t, err)
			again, err := v.InsertAll([][]byte{name})
			require.NoError(t, err)
			require.Equal(t, []fabric.Inserted{{Address: peer}}, again)
			require.Equal(t, 1, v.Len())
			require.NoError(t, v.Remove(peer))
			require.NoError(t, v.Remove(peer))
			// It has its place still, in libfabric, too: nobody else gets that.
			another := insert(t, v, third.e)
			require.NotEqual(t, peer, another)
			exchangeOne(t, a, b, peer)
			exchangeOne(t, a, third, another)
			require.NoError(t, v.RemoveAll([]fabric.Address{another, peer}))
			require.ErrorIs(t, v.Remove(peer), fabric.ErrNotFound)
		}
	})
}

// So it is with an address that no endpoint has: libfabric 2.1 counted it away twice, and divided by the
// number of peers then. libfabric 1.x does not get such an address, which it would never let go of, and
// would confuse with the next.
func TestInsertNobody(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider != "shm" {
			return
		}
		info := datagramsFor(t, provider, fabric.TaggedMessages)
		c := openCorner(t, info)
		a, v := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		b, other := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		insert(t, other, a.e)
		for k := range 1100 {
			// One that is asked for again and again, and others.
			nobody := fmt.Appendf(nil, "weft-test-nobody-%d\x00", k%2*k)
			lost, err := v.Insert(nobody)
			if fabric.LibraryVersion().Major < 2 {
				require.ErrorIs(t, err, fabric.ErrNotFound)
				require.ErrorContains(t, err, "not yet")
			} else {
				require.NoError(t, err)
				again, err := v.Insert(append([]byte("fi_shm://"), nobody...))
				require.NoError(t, err)
				require.Equal(t, lost, again)
				require.NoError(t, v.RemoveAll([]fabric.Address{lost, lost}))
			}
			require.NoError(t, v.Remove(insert(t, v, b.e)))
		}
		require.Zero(t, v.Len())
		exchangeOne(t, a, b, insert(t, v, b.e))
	})
}

// Zeros are the address of nobody.
func TestInsertZeros(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := datagramsFor(t, provider, fabric.TaggedMessages)
		c := openCorner(t, info)
		a, v := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		name, err := a.e.Name()
		require.NoError(t, err)
		_, err = v.Insert(make([]byte, len(name)))
		require.ErrorIs(t, err, fabric.ErrInvalid)
		var wrong *fabric.Error
		require.ErrorAs(t, err, &wrong)
		require.NotEmpty(t, wrong.Detail)
	})
}

// The error of the 257th peer of shm says that there are no more, and one that is removed makes room.
func TestVectorIsFull(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		if provider != "shm" {
			return
		}
		info := datagramsFor(t, provider, fabric.TaggedMessages)
		c := openCorner(t, info)
		full, filling := c.vector(t, fabric.AddressVectorConfig{}), c.vector(t, fabric.AddressVectorConfig{})
		a, _ := c.endpoint(t, info, fabric.Bindings{Events: c.events})
		name, err := a.e.Name()
		require.NoError(t, err)
		_, plain, found := strings.Cut(strings.TrimRight(string(name), "\x00"), "://")
		require.True(t, found)
		// Each name of the memory is that of another peer, of which libfabric 1.x wants to see it.
		peer := func(k int) []byte {
			other := fmt.Sprintf("%s-weft-test-%d", plain, k)
			path := filepath.Join("/dev/shm", other)
			require.NoError(t, os.Link(filepath.Join("/dev/shm", plain), path))
			t.Cleanup(func() { _ = os.Remove(path) })
			return []byte(other + "\x00")
		}
		const most = 256
		var peers []fabric.Address
		for k := range most {
			p, err := full.Insert(peer(k))
			require.NoError(t, err)
			require.NotContains(t, peers, p)
			peers = append(peers, p)
		}
		_, err = full.Insert(peer(most))
		require.ErrorContains(t, err, "256 peers are the most")
		require.NoError(t, full.RemoveAll(peers))
		_, err = full.Insert(peer(most + 1))
		if fabric.LibraryVersion().Major < 2 {
			require.ErrorContains(t, err, "256 of these were removed, and are still there")
		} else {
			require.NoError(t, err)
		}
		_, err = filling.Insert(peer(most + 2))
		require.NoError(t, err)
	})
}
