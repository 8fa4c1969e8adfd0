package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// holding is one side of the datagram estates.
type holding struct {
	e      *fabric.Endpoint
	v      *fabric.AddressVector
	peer   fabric.Address
	remote fabric.Remote // memory of the other side
	// memory is registered, and descriptor is its.
	memory     []byte
	descriptor fabric.Descriptor
}

// turn takes a turn for which nobody cares: what it posts may be refused, and
// what completes may have failed because the peer is gone.
func (h *holding) turn(t *testing.T, posts ...fabric.Op) {
	t.Helper()
	var completions [16]fabric.Completion
	_, err := h.e.Turn(posts, completions[:], 0)
	require.NoError(t, err)
}

// inFlight leaves operations of every kind that the endpoint has under way:
// receives that nothing matches, messages that nobody receives, and access to
// the peer's memory.
func (h *holding) inFlight(t *testing.T, e *estate, long []byte) {
	t.Helper()
	short := func() []byte { return make([]byte, 16) }
	word := func() []byte { return make([]byte, 8) }
	sum := func(result []byte) *fabric.Atomic {
		return &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: result}
	}
	ops := []fabric.Op{
		{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Buf: make([]byte, 64)},
		{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Vector: [][]byte{short(), short()}},
		{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 64)},
		{Kind: fabric.OpTaggedSend, Peer: h.peer, Tag: 1},
		{Kind: fabric.OpTaggedSend, Peer: h.peer, Tag: 1, Buf: short()},
		{Kind: fabric.OpTaggedSend, Peer: h.peer, Tag: 2, Buf: long},
		{Kind: fabric.OpTaggedSend, Peer: h.peer, Tag: 2, Buf: long[:16<<10], Flags: fabric.DeliveryComplete},
		{Kind: fabric.OpTaggedInject, Peer: h.peer, Tag: 3, Buf: short()},
		{Kind: fabric.OpSend, Peer: h.peer, Buf: long},
		{Kind: fabric.OpSend, Peer: h.peer, Buf: short()},
		{Kind: fabric.OpInject, Peer: h.peer, Buf: short()},
		{Kind: fabric.OpWrite, Peer: h.peer, Buf: long, Remote: h.remote},
		{Kind: fabric.OpWrite, Peer: h.peer, Buf: short(), Remote: h.remote, Flags: fabric.Immediate, Immediate: 5},
		{Kind: fabric.OpWriteInject, Peer: h.peer, Buf: short(), Remote: h.remote},
		{Kind: fabric.OpRead, Peer: h.peer, Buf: make([]byte, len(long)), Remote: h.remote},
		{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Buf: h.memory, Descriptor: h.descriptor, Fixed: true},
		{Kind: fabric.OpTaggedSend, Peer: h.peer, Tag: 2, Buf: h.memory, Descriptor: h.descriptor, Fixed: true},
		{Kind: fabric.OpWrite, Peer: h.peer, Buf: h.memory, Descriptor: h.descriptor, Fixed: true, Remote: h.remote},
		{Kind: fabric.OpRead, Peer: h.peer, Buf: h.memory, Descriptor: h.descriptor, Fixed: true, Remote: h.remote},
		{Kind: fabric.OpAtomic, Peer: h.peer, Buf: word(), Remote: h.remote, Atomic: sum(nil)},
		{Kind: fabric.OpFetch, Peer: h.peer, Buf: word(), Remote: h.remote, Atomic: sum(word())},
	}
	e.random.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	h.turn(t, ops[:e.random.IntN(len(ops)+1)]...)
	for _, op := range ops {
		require.NoError(t, op.Err, op.Kind)
	}
}

// datagrams builds two endpoints of one domain with everything that endpoints
// can have, and operations in flight between them.
func datagrams(e *estate, info *fabric.Info) {
	t := e.t
	f, err := info.OpenFabric()
	require.NoError(t, err)
	e.add("fabric", f)
	d, err := f.OpenDomain(info)
	require.NoError(t, err)
	e.add("domain", d)
	ev, err := f.OpenEventQueue()
	require.NoError(t, err)
	e.add("event queue", ev, func() { _, _, _ = ev.Read() })

	const size = 256 << 10
	sides := [2]*holding{{}, {}}
	var remotes [2]fabric.Remote
	for i, h := range sides {
		h.v, err = d.OpenAddressVector()
		require.NoError(t, err)
		e.add("address vector", h.v)
		sends, err := d.OpenCompletionQueue(128)
		require.NoError(t, err)
		e.add("completion queue", sends)
		receives := sends
		if i == 0 {
			receives, err = d.OpenCompletionQueue(128)
			require.NoError(t, err)
			e.add("receive queue", receives)
		}
		sent, err := d.OpenCounter()
		require.NoError(t, err)
		e.add("counter", sent)
		h.e, err = d.OpenEndpoint()
		require.NoError(t, err)
		e.add("endpoint", h.e, func() { h.turn(t) })
		require.NoError(t, h.e.EnableWith(fabric.Bindings{
			Vector: h.v, Send: sends, Receive: receives, Events: ev,
			Counters: []fabric.CounterBinding{{Counter: sent, Events: fabric.CountSends}},
		}))

		arena, err := fabric.NewArena(size)
		require.NoError(t, err)
		e.add("arena", arena)
		region, err := arena.Register(d, fabric.RegionConfig{Access: fabric.AccessAll})
		require.NoError(t, err)
		e.add("region", region)
		pool, err := fabric.NewPool(arena, fabric.PoolConfig{Smallest: 4096, Region: region})
		require.NoError(t, err)
		e.add("pool", pool)
		buffer, err := pool.Get(100)
		require.NoError(t, err)
		put := buffer.Put
		if e.random.IntN(2) == 0 {
			// One buffer is out until it is put back.
			e.add("buffer", closing(once(put)))
		} else {
			require.NoError(t, put())
		}
		remotes[i], err = region.RemoteOf(arena.Bytes())
		require.NoError(t, err)
		h.memory, h.descriptor = arena.Bytes(), region.Descriptor()
		told, err := region.Remote()
		require.NoError(t, err)
		mapped, err := d.MapRemote(told)
		require.NoError(t, err)
		e.add("mapped region", mapped)
	}
	for i, h := range sides {
		name, err := sides[1-i].e.Name()
		require.NoError(t, err)
		h.peer, err = h.v.Insert(name)
		require.NoError(t, err)
		h.remote = remotes[1-i]
	}
	for _, h := range sides {
		h.inFlight(t, e, make([]byte, size))
		if alias, err := h.e.OpenAlias(fabric.Sending, fabric.DeliveryComplete); err == nil {
			e.add("alias", alias)
			posts := []fabric.Op{
				{Kind: fabric.OpTaggedSend, Peer: h.peer, Tag: 4, Buf: make([]byte, 8)},
				{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Buf: make([]byte, 8)},
			}
			_, err = alias.Turn(posts, nil, 0)
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, fabric.ErrNotSupported)
		}
	}
	// How far they get before the first is closed.
	for range e.random.IntN(8) {
		e.useAll()
	}
}

// closing makes a function something to close.
type closing func() error

func (c closing) Close() error { return c() }

// once is nil from the first success on.
func once(do func() error) func() error {
	done := false
	return func() error {
		if done {
			return nil
		}
		err := do()
		done = err == nil
		return err
	}
}

// everything that the providers here have for reliable datagrams.
const everything = fabric.Messages | fabric.TaggedMessages | fabric.RemoteMemory | fabric.Atomics

func TestCloseOrdersOfDatagrams(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := datagramsFor(t, provider, everything)
		inOrders(t, 40, func(e *estate) { datagrams(e, info) })
	})
}
