//go:build !asan

package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

func TestPoolWithRegionDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		memory := arena(t, 1<<16)
		region, err := memory.Register(s.domain, fabric.RegionConfig{Access: fabric.AccessAll})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, region.Close()) })
		pool, err := fabric.NewPool(memory, fabric.PoolConfig{Smallest: 64, Largest: 1 << 12, Region: region})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, pool.Close()) })
		var failed error
		requireFree(t, func() {
			small, err := pool.Get(1)
			large, more := pool.Get(3000)
			_, where := large.Remote()
			_, _ = small.Descriptor(), large.Bytes()
			failed = errors.Join(failed, err, more, where, small.Put(), large.Put())
		}, "get and put")
		require.NoError(t, failed)
		var out []fabric.Buffer
		for pool.Out() < 16 {
			b, err := pool.Get(1 << 12)
			require.NoError(t, err)
			out = append(out, b)
		}
		requireFree(t, func() { _, failed = pool.Get(64) }, "a pool that has no more")
		require.ErrorIs(t, failed, fabric.ErrAgain)
		for _, b := range out {
			require.NoError(t, b.Put())
		}
	})
}

func TestPlacesInMemoryDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openDomain(t, rmaHints(provider))
		memory := arena(t, 4096).Bytes()
		region := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessAll}, memory)
		var failed error
		var remote fabric.RemoteRegion
		requireFree(t, func() {
			_, err := region.RemoteOf(memory[100:200])
			failed = errors.Join(failed, err)
		}, "remote of a buffer")
		requireFree(t, func() {
			var err error
			remote, err = region.Remote()
			_, _, _ = region.Descriptor(), region.Len(), region.Access()
			failed = errors.Join(failed, err)
		}, "remote of all")
		mapped, err := s.domain.MapRemote(remote)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, mapped.Close()) })
		told := make([]byte, 0, 64)
		requireFree(t, func() {
			var heard fabric.RemoteRegion
			b, err := remote.AppendBinary(told[:0])
			_, there := mapped.At(8, 8)
			failed = errors.Join(failed, err, heard.UnmarshalBinary(b), there)
			_, err = heard.At(8, 8)
			failed = errors.Join(failed, err)
		}, "told, heard, and used")
		require.NoError(t, failed)
	})
}

func TestAddressesDoNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, _ := stations(t, provider, fabric.Messages)
		requireFree(t, func() { _, _ = a.v.Len(), a.v.Type() }, "properties")
		requireFree(t, func() { _, _ = a.peer.Context(1, 2), a.peer.InGroup(3) }, "parts of a peer")
		requireFree(t, func() { _ = fabric.MPITag(1, 2) }, "tag")
	})
}
