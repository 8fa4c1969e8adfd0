package fabrictest

import (
	"encoding/binary"

	"github.com/weft-go/weft/fabric"
)

var resourceCases = []named{
	{"sends", func(t *trial) { floodOfSends(t, fabric.OpSend, fabric.OpReceive) }},
	{"receives", func(t *trial) { floodOfReceives(t, fabric.OpSend, fabric.OpReceive) }},
	{"tagged sends", func(t *trial) { floodOfSends(t, fabric.OpTaggedSend, fabric.OpTaggedReceive) }},
	{"tagged receives", func(t *trial) { floodOfReceives(t, fabric.OpTaggedSend, fabric.OpTaggedReceive) }},
}

// flood posts one operation after the other until there is no room, reading no
// completion meanwhile, and returns how many were taken.
func (s *station) flood(t *trial, operation func(i int) fabric.Op) int {
	t.Helper()
	for taken := 0; ; taken++ {
		isTrue(t, taken <= s.q.Size(), "more operations than the queue has entries")
		posts := []fabric.Op{operation(taken)}
		s.register(t, &posts[0])
		_, err := s.Turn(posts, nil, 0)
		noError(t, err)
		if posts[0].Result == fabric.Refused {
			return taken
		}
		noError(t, posts[0].Err)
	}
}

func number(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

// A sender that posts until it is refused loses nothing: everything that was
// taken arrives in order, and what was refused is taken later.
func floodOfSends(t *trial, send, receive fabric.OpKind) {
	a, b := pairOf(t, bothMessages)
	// Some connect with the first message, and take none until then.
	b.must(t, fabric.Op{Kind: receive, Peer: fabric.AddressAny})
	a.must(t, fabric.Op{Kind: send, Peer: a.peer})
	b.done(t)
	a.done(t)
	operation := func(i int) fabric.Op {
		return fabric.Op{Kind: send, Peer: a.peer, Buf: number(i), Context: uint64(i)}
	}
	count := a.flood(t, operation)
	isTrue(t, count > 0, "nothing was taken")
	got := make([]byte, 8)
	for i := range count + 1 {
		if i == count {
			a.must(t, operation(count))
		}
		clear(got)
		b.must(t, fabric.Op{Kind: receive, Peer: fabric.AddressAny, Buf: got})
		b.done(t)
		equal(t, number(i), got)
	}
	contexts := map[uint64]bool{}
	for range count + 1 {
		contexts[a.done(t).Context] = true
	}
	equal(t, count+1, len(contexts), "each send completes once")
	idle(t, a, b)
}

// Nor does a receiver that posts until it is refused.
func floodOfReceives(t *trial, send, receive fabric.OpKind) {
	a, b := pairOf(t, bothMessages)
	var bufs [][]byte
	operation := func(i int) fabric.Op {
		if i == len(bufs) {
			bufs = append(bufs, make([]byte, 8))
		}
		return fabric.Op{Kind: receive, Peer: fabric.AddressAny, Buf: bufs[i], Context: uint64(i)}
	}
	count := b.flood(t, operation)
	isTrue(t, count > 0, "nothing was taken")
	for i := range count + 1 {
		if i == count {
			b.must(t, operation(count))
		}
		a.must(t, fabric.Op{Kind: send, Peer: a.peer, Buf: number(i)})
		equal(t, uint64(i), b.done(t).Context)
		equal(t, number(i), bufs[i])
		a.done(t)
	}
	idle(t, a, b)
}
