package fabrictest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

var messageCases = []named{
	{"untagged", untaggedMessages},
	{"tagged", taggedMessages},
	{"vectors", vectors},
	{"completion levels", completionLevels},
	{"many in flight", manyInFlight},
	{"many peers", manyPeers},
}

// Messages of every size arrive whole, with their source and both contexts.
func untaggedMessages(t *trial) {
	a, b := pairOf(t, fabric.Messages|fabric.SourceAddress)
	for _, size := range []int{0, 1, 64, 5000, 1 << 20} {
		sent, got := counting(size), make([]byte, size+1)
		b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 2})
		a.must(t, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: sent, Context: 1})
		c := b.done(t)
		equal(t, 2, c.Context)
		equal(t, fabric.OpReceive, c.Kind)
		equal(t, size, c.Len)
		equal(t, b.peer, c.Source)
		isTrue(t, bytes.Equal(sent, got[:size]), "the bytes of %d", size)
		c = a.done(t)
		equal(t, 1, c.Context)
		equal(t, fabric.OpSend, c.Kind)
	}
	idle(t, a, b)
}

// What a completion is asked to mean is what it means at least, or the operation is
// refused: one that has matched, or that was delivered, is done when the peer has a
// receive.
func completionLevels(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	for name, flag := range map[string]fabric.OpFlags{
		"inject": fabric.InjectComplete, "transmit": fabric.TransmitComplete, "delivery": fabric.DeliveryComplete,
		"match": fabric.MatchComplete, "commit": fabric.CommitComplete,
	} {
		t.sub(name, func(t *trial) {
			op := a.post(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: counting(64), Flags: flag})
			if op.Result == fabric.Failed {
				isTrue(t, errors.Is(op.Err, fabric.ErrInvalid) || errors.Is(op.Err, fabric.ErrNotSupported), "%v", op.Err)
				isTrue(t, flag == fabric.MatchComplete || flag == fabric.CommitComplete, "refused: %v", op.Err)
				return
			}
			got := make([]byte, 64)
			b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got})
			a.done(t)
			b.done(t)
			equal(t, counting(64), got)
		})
	}
	idle(t, a, b)
}

// The same with tags, of which some bits are ignored.
func taggedMessages(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages|fabric.SourceAddress)
	for _, size := range []int{0, 1, 8, 255, 256, 4096, 4097, 1 << 20, 5<<20 + 3} {
		sent, got := counting(size), make([]byte, size+1)
		b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1 << 33, Ignore: 0xffffffff, Buf: got, Context: 22})
		a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1<<33 | 7, Buf: sent, Context: 11})
		c := b.done(t)
		equal(t, 22, c.Context)
		equal(t, size, c.Len)
		equal(t, 1<<33|7, c.Tag)
		equal(t, b.peer, c.Source)
		isTrue(t, bytes.Equal(sent, got[:size]), "the bytes of %d", size)
		equal(t, 11, a.done(t).Context)
	}
	idle(t, a, b)
}

// A message is gathered from several buffers, and scattered into several.
func vectors(t *trial) {
	a, b := pairOf(t, bothMessages)
	if send, receive := a.site.info.Send().Vectors, a.site.info.Receive().Vectors; send < 2 || receive < 2 {
		t.need("vectors", fmt.Errorf("it sends from %d buffers at most, and receives into %d", send, receive))
	}
	for _, kinds := range [][2]fabric.OpKind{{fabric.OpSend, fabric.OpReceive}, {fabric.OpTaggedSend, fabric.OpTaggedReceive}} {
		got := [][]byte{make([]byte, 3), make([]byte, 8)}
		b.must(t, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Tag: 4, Vector: got})
		a.must(t, fabric.Op{Kind: kinds[0], Peer: a.peer, Tag: 4, Vector: [][]byte{[]byte("hello "), []byte("world")}})
		equal(t, 11, b.done(t).Len)
		equal(t, "hello world", string(got[0])+string(got[1]))
		a.done(t)
	}
	idle(t, a, b)
}

// Each of many messages on their way at once finds its receive.
func manyInFlight(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	const count = 300
	var sends, receives []fabric.Op
	got := make([][]byte, count)
	for i := range count {
		got[i] = make([]byte, 64)
		sends = append(sends, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: uint64(i), Buf: fmt.Appendf(nil, "message %d", i), Context: uint64(i)})
		receives = append(receives, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: got[i], Context: uint64(i)})
	}
	fromA, fromB := carry(t, a, b, sends, receives, count, count)
	equal(t, [2]int{count, count}, [2]int{len(fromA), len(fromB)})
	sent, seen := map[uint64]bool{}, map[uint64]bool{}
	for i, c := range fromB {
		noError(t, c.Err)
		noError(t, fromA[i].Err)
		sent[fromA[i].Context], seen[c.Context] = true, true
		equal(t, c.Context, c.Tag)
		equal(t, fmt.Sprintf("message %d", c.Tag), string(got[c.Context][:c.Len]))
	}
	equal(t, [2]int{count, count}, [2]int{len(sent), len(seen)}, "each completes once")
	idle(t, a, b)
}

// Five endpoints send to each other, themselves left out, and each knows who
// sent what, in the order of sending.
func manyPeers(t *trial) {
	const count, rounds = 5, 10
	s := openSite(t, t.hints(fabric.ReliableDatagram, fabric.TaggedMessages|fabric.SourceAddress))
	var all [count]*station
	var known [count][count]fabric.Address
	var posts [count][]fabric.Op
	var bufs [count][][]byte
	for i := range all {
		all[i] = s.open(t, s.info, fabric.Bindings{})
	}
	for i, to := range all {
		for j, from := range all {
			known[i][j] = insert(t, to.v, from.e)
			for range rounds {
				if i != j {
					bufs[i] = append(bufs[i], make([]byte, 32))
					posts[i] = append(posts[i], fabric.Op{
						Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(j),
						Buf: bufs[i][len(bufs[i])-1], Context: uint64(len(bufs[i]) - 1),
					})
				}
			}
		}
	}
	for i, from := range all {
		for round := range rounds {
			for j := range all {
				if i != j {
					posts[i] = append(posts[i], fabric.Op{
						Kind: fabric.OpTaggedSend, Peer: known[i][j], Tag: uint64(i),
						Buf: fmt.Appendf(nil, "%d to %d, round %d", i, j, round),
					})
				}
			}
		}
		for k := range posts[i] {
			from.register(t, &posts[i][k])
		}
	}
	const each = 2 * (count - 1) * rounds
	t.until("messages of all", func(try int) bool {
		ended := true
		for i, x := range all {
			x.step(t, posts[i], try)
			posts[i] = accepted(t, posts[i])
			ended = ended && len(x.got) >= each
		}
		return ended
	})
	for j, x := range all {
		equal(t, each, len(x.got))
		var next [count]int
		for _, c := range x.got {
			noError(t, c.Err)
			if c.Kind == fabric.OpTaggedSend {
				continue
			}
			i := int(c.Tag)
			equal(t, known[j][i], c.Source)
			equal(t, fmt.Sprintf("%d to %d, round %d", i, j, next[i]), string(bufs[j][c.Context][:c.Len]))
			next[i]++
		}
		x.got = nil
	}
	idle(t, all[:]...)
}
