package fabric_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// strangers are operations with peers that are not there.
func strangers(caps fabric.Capabilities, remote fabric.Remote, peers ...fabric.Address) (ops []fabric.Op) {
	word := func() []byte { return make([]byte, 8) }
	sum := func(result []byte) *fabric.Atomic {
		return &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: result}
	}
	for _, peer := range peers {
		all := []fabric.Op{{Kind: fabric.OpSend}, {Kind: fabric.OpInject}, {Kind: fabric.OpSend, Flags: fabric.Immediate}}
		if caps&fabric.TaggedMessages != 0 {
			all = append(all, fabric.Op{Kind: fabric.OpTaggedSend}, fabric.Op{Kind: fabric.OpTaggedInject}, fabric.Op{Kind: fabric.OpTaggedSend, Flags: fabric.DeliveryComplete})
		}
		if caps&fabric.RemoteMemory != 0 {
			all = append(all, fabric.Op{Kind: fabric.OpRead}, fabric.Op{Kind: fabric.OpWrite}, fabric.Op{Kind: fabric.OpWriteInject})
		}
		if caps&fabric.Atomics != 0 {
			all = append(all, fabric.Op{Kind: fabric.OpAtomic, Atomic: sum(nil)}, fabric.Op{Kind: fabric.OpFetch, Atomic: sum(word())})
		}
		if caps&fabric.DirectedReceive != 0 && peer != fabric.AddressAny {
			all = append(all, fabric.Op{Kind: fabric.OpTaggedReceive})
		}
		for _, op := range all {
			op.Peer, op.Buf, op.Remote = peer, word(), remote
			ops = append(ops, op)
		}
	}
	return ops
}

// unknown requires that a turn refuses each operation because of its peer.
func unknown(t *testing.T, e turner, ops []fabric.Op) {
	t.Helper()
	for _, op := range ops {
		posts := []fabric.Op{op}
		_, err := e.Turn(posts, nil, 0)
		require.NoError(t, err)
		require.Equal(t, fabric.Failed, posts[0].Result, "%v to %d", op.Kind, op.Peer)
		require.ErrorIs(t, posts[0].Err, fabric.ErrNotFound)
	}
}

// What names a peer that is not there, or not any more, fails, and nothing else does:
// providers would look for it outside of their tables.
func TestUnknownPeer(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		inProcess(t, func(t *testing.T) {
			const caps = fabric.Messages | fabric.TaggedMessages | fabric.RemoteMemory | fabric.Atomics | fabric.DirectedReceive
			a, b := stations(t, provider, caps)
			_, remote := shared(t, b, 64)
			nobody := []fabric.Address{77, 1 << 20, 77 << 32, 1<<63 | 1, fabric.AddressAny - 1, fabric.AddressAny}
			unknown(t, a.e, strangers(caps, remote, nobody...))
			if alias, err := a.e.OpenAlias(fabric.Sending, 0); err == nil {
				unknown(t, alias, strangers(caps, remote, nobody...))
				require.NoError(t, alias.Close())
			} else {
				require.ErrorIs(t, err, fabric.ErrNotSupported)
			}

			exchange := func() {
				got := make([]byte, 8)
				b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: b.peer, Tag: 1, Buf: got})
				a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: []byte("known")})
				require.NoError(t, a.await(t, b).Err)
				done := b.await(t, a)
				require.NoError(t, done.Err)
				require.Equal(t, "known", string(got[:done.Len]))
			}
			exchange()
			// The refused ones are among those that are not.
			posts := []fabric.Op{
				{Kind: fabric.OpTaggedSend, Peer: 77, Buf: make([]byte, 8)},
				{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 9, Buf: make([]byte, 8)},
				{Kind: fabric.OpTaggedInject, Peer: 78, Buf: make([]byte, 8)},
			}
			a.turn(t, posts)
			require.Equal(t, []fabric.Result{fabric.Failed, fabric.Posted, fabric.Failed}, []fabric.Result{posts[0].Result, posts[1].Result, posts[2].Result})
			require.NoError(t, a.e.Cancel(posts[1].Token))
			require.ErrorIs(t, a.await(t, b).Err, fabric.ErrCanceled)

			require.NoError(t, a.v.Remove(a.peer))
			unknown(t, a.e, strangers(caps, remote, a.peer))
			a.peer = a.insert(t, b)
			exchange()
			require.Zero(t, a.q.InFlight())
		})
	})
}

// A peer that was inserted more than once is there until it has been removed as often,
// and one that was inserted by its name is there too.
func TestKnownPeer(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		send := func(peer fabric.Address) {
			a.must(t, b, fabric.Op{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1, Buf: []byte("known")})
			b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)})
			require.NoError(t, b.await(t, a).Err)
			require.NoError(t, a.await(t, b).Err)
		}
		again := a.insert(t, b)
		require.NoError(t, a.v.Remove(again))
		if again != a.peer {
			unknown(t, a.e, strangers(fabric.TaggedMessages, fabric.Remote{}, again))
		}
		send(a.peer)

		if provider == "shm" || provider == "efa" {
			return // no services
		}
		name, err := b.e.Name()
		require.NoError(t, err)
		named, err := a.v.InsertService("127.0.0.1", strconv.Itoa(int(name[2])<<8|int(name[3])))
		require.NoError(t, err)
		send(named)
	})
}

// Receives of endpoints that take messages of anybody may name whomever.
func TestUndirectedReceiveOfUnknownPeer(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.TaggedMessages)
		if a.info.Capabilities()&fabric.DirectedReceive != 0 {
			testenv.Need(t, provider+" without directed receives", errors.New("it has them unasked"))
		}
		b.must(t, a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: 77, Tag: 1, Buf: make([]byte, 8)})
		a.must(t, b, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: 1, Buf: make([]byte, 8)})
		require.NoError(t, b.await(t, a).Err)
	})
}

// So it is for datagrams, of which udp sends none and says that there is no room.
func TestUnknownPeerOfDatagrams(t *testing.T) {
	info := datagramInfo(t, "udp")
	inProcess(t, func(t *testing.T) {
		c := openCorner(t, info)
		e, _ := c.endpoint(t, info, fabric.Bindings{})
		unknown(t, e, strangers(fabric.Messages, fabric.Remote{}, 0, 77, fabric.AddressAny))
	})
}

// A context of a scalable endpoint looks at the peer within an address that names one of
// the peer's contexts.
func TestUnknownPeerOfContexts(t *testing.T) {
	const bits = 2
	info := datagramsFor(t, "sockets", fabric.Messages|fabric.TaggedMessages|fabric.NamedReceiveContexts)
	inProcess(t, func(t *testing.T) {
		c := openCorner(t, info)
		several, err := info.WithContexts(2, 2)
		require.NoError(t, err)
		v := c.vector(t, fabric.AddressVectorConfig{ReceiveBits: bits})
		s, err := c.domain.OpenScalableEndpoint(several)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Enable(v, c.events))
		x, err := s.OpenSend(0)
		require.NoError(t, err)
		q := c.queue(t)
		t.Cleanup(func() { require.NoError(t, x.Close()) })
		require.NoError(t, x.Enable(q))
		insert(t, v, s)
		nobody := fabric.Address(77)
		unknown(t, x, strangers(fabric.Messages|fabric.TaggedMessages, fabric.Remote{}, nobody, nobody.Context(1, bits), fabric.AddressAny))
	})
}
