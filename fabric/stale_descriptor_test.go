package fabric_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// strange are descriptors that no operation of a station can have, by what they are.
func strange(t *testing.T, s, other *station, memory *fabric.Arena) map[string]fabric.Descriptor {
	t.Helper()
	closed, err := memory.Register(s.domain, fabric.RegionConfig{})
	require.NoError(t, err)
	all := map[string]fabric.Descriptor{"closed": closed.Descriptor()}
	require.NoError(t, closed.Close())
	// In the place of the one that is closed.
	_, _, descriptor := held(t, s, 4096)
	require.NotEqual(t, descriptor, all["closed"])
	_, _, all["of another domain"] = held(t, other, 4096)
	all["invented"] = 0x1234
	all["too far"] = fabric.Descriptor(uint64(descriptor) | 0xffffffff)
	all["of no generation"] = fabric.Descriptor(uint32(descriptor))
	return all
}

// A descriptor whose region is gone, or that is of another domain, is refused wherever
// an operation has it: efa dies of it.
func TestStaleDescriptor(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		s := openSite(t, fabric.Hints{Provider: provider, MemoryMode: everyMemoryMode, Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.RemoteMemory | fabric.Atomics}, nil, nil)
		a, b := s.a, s.b
		_, elsewhere := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		memory := arena(t, 1<<16)
		_, own, good := held(t, a, 4096)
		_, remote := shared(t, b, 4096)
		bytes := memory.Bytes()[:64]
		operands := &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.AtomicRead, Result: own[:8], ResultDescriptor: good}
		for what, d := range strange(t, a, elsewhere, memory) {
			t.Run(what, func(t *testing.T) {
				withResult, withCompare := *operands, *operands
				withResult.ResultDescriptor = d
				withCompare.Operation, withCompare.Compare, withCompare.CompareDescriptor = fabric.CompareSwap, own[8:16], d
				for _, op := range []fabric.Op{
					{Kind: fabric.OpSend, Buf: bytes, Descriptor: d},
					{Kind: fabric.OpTaggedSend, Buf: bytes, Descriptor: d},
					{Kind: fabric.OpTaggedSend, Vector: [][]byte{own[:8], bytes}, Descriptors: []fabric.Descriptor{good, d}},
					{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: bytes, Descriptor: d},
					{Kind: fabric.OpRead, Buf: bytes, Descriptor: d, Remote: remote},
					{Kind: fabric.OpWrite, Buf: bytes, Descriptor: d, Remote: remote},
					{Kind: fabric.OpAtomic, Buf: bytes[:8], Descriptor: d, Remote: remote, Atomic: &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum}},
					{Kind: fabric.OpFetch, Buf: own[:8], Descriptor: good, Remote: remote, Atomic: &withResult},
					{Kind: fabric.OpCompare, Buf: own[:8], Descriptor: good, Remote: remote, Atomic: &withCompare},
				} {
					op.Fixed = true
					if op.Peer != fabric.AddressAny {
						op.Peer = a.peer
					}
					ops := []fabric.Op{op}
					_, err := a.e.Turn(ops, make([]fabric.Completion, 1), 0)
					require.NoError(t, err)
					require.Equal(t, fabric.Failed, ops[0].Result, op.Kind)
					require.ErrorIs(t, ops[0].Err, fabric.ErrInvalid)
					require.ErrorContains(t, ops[0].Err, "is of no region of this domain that is open")
				}
			})
		}
		// Nothing has been posted, and what is right is.
		require.Zero(t, a.q.InFlight())
		require.Equal(t, fabric.Posted, a.must(t, b, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: own[:64], Descriptor: good, Remote: remote, Fixed: true}).Result)
		require.NoError(t, a.await(t, b).Err)
		// With a Vector, its Descriptors count and no other.
		a.must(t, b, fabric.Op{
			Kind: fabric.OpWrite, Peer: a.peer, Vector: [][]byte{own[:8]}, Descriptors: []fabric.Descriptor{good}, Descriptor: 0x1234, Remote: remote, Fixed: true,
		})
		require.NoError(t, a.await(t, b).Err)
	})
}

// Regions come and go while another goroutine sends with their descriptors: what it
// has got in keeps its region open, and the rest is refused.
func TestDescriptorIsClosedBesidePosts(t *testing.T) {
	const rounds = 100
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		memory, into := arena(t, 4096), arena(t, 4096)
		described, posted := make(chan fabric.Descriptor), make(chan struct{})
		var closing sync.WaitGroup
		closing.Go(func() {
			defer close(described)
			for i := range 2 * rounds {
				r, err := memory.Register(a.domain, fabric.RegionConfig{})
				if !assert.NoError(t, err) {
					return
				}
				described <- r.Descriptor()
				if i%2 == 1 {
					// This one is closed while it is in flight, the other beside the post.
					posted <- struct{}{}
				}
				for err = r.Close(); err != nil; err = r.Close() {
					if !assert.ErrorIs(t, err, fabric.ErrBusy) {
						return
					}
				}
			}
		})
		i, went := 0, 0
		for d := range described {
			op := a.post(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: memory.Bytes()[:64], Descriptor: d, Fixed: true})
			if i%2 == 1 {
				<-posted
				require.NoError(t, op.Err)
			}
			i++
			if op.Result == fabric.Failed {
				require.ErrorIs(t, op.Err, fabric.ErrInvalid)
				continue
			}
			went++
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: into.Bytes(), Fixed: true})
			require.NoError(t, a.await(t, b).Err)
			require.NoError(t, b.await(t, a).Err)
		}
		closing.Wait()
		require.GreaterOrEqual(t, went, rounds)
	})
}

// A region of which Close refuses stays as it was for those who post beside that.
func TestDescriptorBesideCloseThatRefuses(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages)
		region, memory, d := held(t, a, 4096)
		into := arena(t, 4096)
		// It is in use for as long as this is.
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: memory[:64], Descriptor: d, Fixed: true})
		var closing sync.WaitGroup
		var over atomic.Bool
		closing.Go(func() {
			for !over.Load() && d != 0 {
				assert.ErrorIs(t, region.Close(), fabric.ErrBusy)
			}
		})
		defer func() {
			over.Store(true)
			closing.Wait()
			require.NoError(t, a.e.Close())
		}()
		for range 200 {
			a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: memory[64:128], Descriptor: d, Fixed: true})
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: into.Bytes(), Fixed: true})
			require.NoError(t, a.await(t, b).Err)
			require.NoError(t, b.await(t, a).Err)
		}
	})
}

func TestStaleDescriptorOfCollective(t *testing.T) {
	members := groupsOf(t, 2)
	in, out := make([]byte, 8), make([]byte, 8)
	for _, c := range []fabric.Collective{{Descriptor: 1 << 32}, {ResultDescriptor: 1 << 32}} {
		c.Buf, c.Result, c.Type, c.Operation = in, out, fabric.Uint64, fabric.Sum
		_, err := members[0].group.AllReduce(c)
		require.ErrorIs(t, err, fabric.ErrInvalid)
		require.ErrorContains(t, err, "is of no region of this domain that is open")
	}
	require.Zero(t, members[0].q.InFlight())
}
