package fabric_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// parts are n buffers with numbers.
func parts(n, size int) (v [][]byte) {
	for i := range n {
		b := make([]byte, size)
		for j := range b {
			b[j] = byte(i + 1)
		}
		v = append(v, b)
	}
	return v
}

// What the provider says that it takes is done, and more buffers, more bytes to
// inject and larger immediates are refused, whatever the provider would do with them.
func TestLimitsExceeded(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.RemoteMemory|fabric.Atomics)
		memory, remote := shared(t, b, 4096)
		for _, kind := range []fabric.OpKind{
			fabric.OpSend, fabric.OpTaggedSend, fabric.OpReceive, fabric.OpTaggedReceive,
			fabric.OpWrite, fabric.OpRead, fabric.OpAtomic, fabric.OpFetch, fabric.OpCompare,
		} {
			most := int(a.info.Send().Vectors)
			if kind == fabric.OpReceive || kind == fabric.OpTaggedReceive {
				most = int(a.info.Receive().Vectors)
			}
			require.Positive(t, most)
			for n := 1; n <= 8; n++ {
				t.Run(fmt.Sprint(n, " buffers to ", kind), func(t *testing.T) {
					clear(memory)
					severalParts(t, a, b, memory, fabric.Op{Kind: kind, Remote: remote, Vector: parts(n, 8)}, n <= most)
				})
			}
		}
		for _, kind := range []fabric.OpKind{fabric.OpInject, fabric.OpTaggedInject, fabric.OpWriteInject, fabric.OpAtomicInject} {
			for _, size := range []int{int(a.info.InjectSize()) + 1, 1 << 20} {
				op := fabric.Op{Kind: kind, Peer: a.peer, Buf: make([]byte, size), Remote: remote}
				if kind == fabric.OpAtomicInject {
					op.Atomic = &fabric.Atomic{Type: fabric.Uint8, Operation: fabric.Sum}
				}
				require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrInvalid, "%v of %d bytes", kind, size)
			}
		}
		if bytes := a.info.ImmediateSize(); bytes < 8 {
			for _, kind := range []fabric.OpKind{fabric.OpSend, fabric.OpTaggedSend, fabric.OpInject, fabric.OpWrite} {
				op := fabric.Op{Kind: kind, Peer: a.peer, Buf: make([]byte, 8), Remote: remote, Flags: fabric.Immediate, Immediate: 1 << (8 * bytes)}
				require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrInvalid, kind)
			}
		}
		require.Zero(t, a.q.InFlight())
		require.Zero(t, b.q.InFlight())
	})
}

// Each kind of operation takes its own flags, and no others, known or not.
func TestFlagsOfOtherKinds(t *testing.T) {
	const levels = fabric.InjectComplete | fabric.TransmitComplete | fabric.DeliveryComplete | fabric.MatchComplete | fabric.CommitComplete
	const reads = fabric.WithCompletion | fabric.Fence | levels
	const sends = reads | fabric.Immediate
	const receives = fabric.WithCompletion | fabric.MultiReceive | fabric.Peek | fabric.Claim | fabric.Discard
	own := map[fabric.OpKind]fabric.OpFlags{
		fabric.OpTaggedSend: sends, fabric.OpTaggedReceive: receives, fabric.OpTaggedInject: fabric.Immediate,
		fabric.OpSend: sends | fabric.ToMulticast, fabric.OpReceive: receives, fabric.OpInject: fabric.Immediate,
		fabric.OpRead: reads, fabric.OpWrite: sends, fabric.OpWriteInject: fabric.Immediate,
		fabric.OpAtomic: sends, fabric.OpAtomicInject: 0, fabric.OpFetch: sends, fabric.OpCompare: sends,
	}
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.RemoteMemory|fabric.Atomics)
		_, remote := shared(t, b, 64)
		for kind, flags := range own {
			for bit := range 64 {
				flag := fabric.OpFlags(1) << bit
				if flags&flag != 0 {
					continue
				}
				op := fabric.Op{Kind: kind, Peer: a.peer, Buf: make([]byte, 8), Remote: remote, Flags: flag}
				switch op.Atomic = (&fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum}); kind {
				case fabric.OpCompare:
					op.Atomic.Operation, op.Atomic.Compare = fabric.CompareSwap, make([]byte, 8)
					fallthrough
				case fabric.OpFetch:
					op.Atomic.Result = make([]byte, 8)
				}
				require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrInvalid, "%v with %#x", kind, uint64(flag))
			}
		}
		require.Zero(t, a.q.InFlight())
	})
}

// severalParts has one of two stations post an operation with a Vector, which either
// does what it should or is refused.
func severalParts(t *testing.T, a, b *station, memory []byte, op fabric.Op, allowed bool) {
	text, got := bytes.Join(op.Vector, nil), make([]byte, 8*len(op.Vector))
	post, other, after := a, b, fabric.Op{}
	op.Peer = a.peer
	switch op.Kind {
	case fabric.OpSend:
		after = fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got}
	case fabric.OpTaggedSend:
		after = fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: got}
	case fabric.OpReceive, fabric.OpTaggedReceive:
		post, other, op.Peer = b, a, fabric.AddressAny
		op.Vector = split(got, 8)
		after = fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: text}
		if op.Kind == fabric.OpTaggedReceive {
			after.Kind = fabric.OpTaggedSend
		}
	case fabric.OpRead:
		copy(memory, text)
		op.Vector = split(got, 8)
	case fabric.OpWrite:
		op.Flags = fabric.DeliveryComplete
		got = memory[:len(got)]
	case fabric.OpAtomic:
		if !strings.HasPrefix(a.info.Provider(), "shm") {
			op.Flags = fabric.DeliveryComplete
		}
		op.Atomic = &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.AtomicWrite}
		got = memory[:len(got)]
	case fabric.OpFetch:
		op.Atomic = &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum, Result: make([]byte, len(got))}
		got = memory[:len(got)]
	case fabric.OpCompare:
		op.Atomic = &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.CompareSwap, Result: make([]byte, len(got)), Compare: make([]byte, len(got))}
		got = memory[:len(got)]
	}
	op = post.post(t, other, op)
	if !allowed {
		require.ErrorIs(t, op.Err, fabric.ErrInvalid)
		return
	}
	require.NoError(t, op.Err)
	if after.Kind != 0 {
		other.must(t, post, after)
		require.NoError(t, other.await(t, post).Err)
	}
	require.NoError(t, post.await(t, other).Err)
	for deadline := time.Now().Add(30 * time.Second); op.Kind == fabric.OpAtomic && op.Flags == 0 && !bytes.Equal(text, got); {
		// It is complete when it has left.
		require.True(t, time.Now().Before(deadline), "no effect")
		post.turn(t, nil)
		other.turn(t, nil)
	}
	require.Equal(t, text, got)
}

// split is memory in pieces.
func split(b []byte, size int) (pieces [][]byte) {
	for piece := range slices.Chunk(b, size) {
		pieces = append(pieces, piece)
	}
	return pieces
}

// What the flags of an operation need is not left out in silence where the endpoint cannot
// do it.
func TestFlagsThatNeedCapabilities(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		a, b := stations(t, provider, fabric.Messages|fabric.TaggedMessages|fabric.RemoteMemory)
		_, remote := shared(t, b, 64)
		if has := a.info.Capabilities(); has&fabric.FencedOperations == 0 {
			for _, kind := range []fabric.OpKind{fabric.OpSend, fabric.OpTaggedSend, fabric.OpRead, fabric.OpWrite} {
				op := fabric.Op{Kind: kind, Peer: a.peer, Buf: make([]byte, 8), Remote: remote, Flags: fabric.Fence}
				require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrNotSupported, kind)
			}
		}
		if a.info.Capabilities()&fabric.TaggedMultiReceiveBuffers == 0 {
			op := fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 1<<16), Flags: fabric.MultiReceive}
			require.ErrorIs(t, a.post(t, b, op).Err, fabric.ErrNotSupported)
		}
		require.Zero(t, a.q.InFlight())
	})
}

// What an endpoint and its queue take for turns is in proportion to the queue, up to 256 entries.
func TestTurnsAreAsLargeAsQueues(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		info := datagramsFor(t, provider, fabric.TaggedMessages)
		takes := func(size int) (bytes, entries int) {
			c := openCorner(t, info)
			q := queueOf(t, c.domain, size)
			before := fabric.MemoryInUse()["turns"]
			p, _ := c.endpoint(t, info, fabric.Bindings{Send: q, Events: c.events})
			bytes = int(fabric.MemoryInUse()["turns"] - before)
			// As many operations go into a turn, and the others are offered again.
			posts := make([]fabric.Op, 300)
			for i := range posts {
				posts[i] = fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)}
			}
			_, err := p.e.Turn(posts, nil, 0)
			require.NoError(t, err)
			posted := 0
			for _, op := range posts {
				require.NoError(t, op.Err)
				if op.Result == fabric.Posted {
					posted++
				}
			}
			require.LessOrEqual(t, posted, min(q.Size(), 256))
			require.Positive(t, posted)
			return bytes, q.Size()
		}
		large, _ := takes(1024)
		few, entries := takes(16)
		if entries <= 32 {
			require.Less(t, few, large/4)
		}
		require.Positive(t, few)
	})
}
