package fabrictest

import (
	"fmt"

	"github.com/weft-go/weft/fabric"
)

var completionCases = []named{
	{"separate queues", separateQueues},
	{"immediate", immediate},
	{"error of one", errorOfOne},
	{"truncated", truncated},
	{"bounded", boundedQueue},
	{"formats", everyFormat},
}

// An endpoint with a queue for each direction.
func separateQueues(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, bothMessages))
	send, receive := s.queue(t, 64), s.queue(t, 64)
	a := s.open(t, s.info, fabric.Bindings{Send: send, Receive: receive})
	b := s.open(t, s.info, fabric.Bindings{})
	acquaint(t, a, b)
	got := make([]byte, 8)
	b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got})
	a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: []byte("there"), Context: 6})
	zero(t, receive.InFlight())
	c := b.done(t)
	equal(t, "there", string(got[:c.Len]))
	equal(t, 6, a.done(t).Context)

	a.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: got, Context: 7})
	equal(t, 1, receive.InFlight())
	zero(t, send.InFlight())
	b.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: b.peer, Tag: 2, Buf: []byte("back")})
	c = a.done(t)
	equal(t, 7, c.Context)
	equal(t, fabric.OpTaggedReceive, c.Kind)
	equal(t, "back", string(got[:c.Len]))
	b.done(t)

	op := a.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 3, Buf: got})
	noError(t, a.e.Cancel(op.Token))
	errorIs(t, a.await(t).Err, fabric.ErrCanceled)
	errorIs(t, send.Close(), fabric.ErrBusy)
	errorIs(t, receive.Close(), fabric.ErrBusy)
	idle(t, a, b)
}

// Immediate data arrives in the completion, with every form of sending.
func immediate(t *trial) {
	a, b := pairOf(t, bothMessages)
	for _, op := range []fabric.Op{
		{Kind: fabric.OpSend, Buf: []byte("data")},
		{Kind: fabric.OpTaggedSend, Buf: []byte("data")},
		{Kind: fabric.OpInject, Buf: []byte("data")},
		{Kind: fabric.OpTaggedInject, Buf: []byte("data")},
		{Kind: fabric.OpTaggedSend, Flags: fabric.TransmitComplete, Buf: []byte("data")},
		{Kind: fabric.OpSend, Vector: [][]byte{[]byte("da"), []byte("ta")}},
	} {
		t.sub(fmt.Sprint(op.Kind, op.Flags, len(op.Vector)), func(t *trial) {
			receive := fabric.OpReceive
			if op.Kind == fabric.OpTaggedSend || op.Kind == fabric.OpTaggedInject {
				receive = fabric.OpTaggedReceive
			}
			b.must(t, fabric.Op{Kind: receive, Peer: fabric.AddressAny, Buf: make([]byte, 16)})
			op.Flags |= fabric.Immediate
			op.Peer, op.Immediate = a.peer, 0x11223344
			a.must(t, op)
			c := b.done(t)
			equal(t, 4, c.Len)
			isTrue(t, c.HasImmediate, "without immediate data")
			equal(t, 0x11223344, c.Immediate)
			if op.Kind != fabric.OpInject && op.Kind != fabric.OpTaggedInject {
				a.done(t)
			}
			idle(t, a, b)
		})
	}
}

// An operation that fails fails alone: those before and after it end as if
// nothing had happened.
func errorOfOne(t *trial) {
	for _, c := range []struct {
		name   string
		want   error
		cancel bool
	}{
		{"cancelled", fabric.ErrCanceled, true},
		{"truncated", fabric.ErrTruncated, false},
	} {
		t.sub(c.name, func(t *trial) {
			a, b := pairOf(t, fabric.TaggedMessages)
			bufs := [3][]byte{make([]byte, 16), make([]byte, 4), make([]byte, 16)}
			var posted [3]fabric.Op
			for i := range bufs {
				posted[i] = b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: bufs[i], Context: uint64(10 + i)})
			}
			if c.cancel {
				noError(t, b.e.Cancel(posted[1].Token))
			}
			for i := range bufs {
				if i != 1 || !c.cancel {
					a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: uint64(i), Buf: []byte("text number x")})
					noError(t, a.await(t).Err, "the sender does not learn of it")
				}
			}
			ended := map[uint64]fabric.Completion{}
			for range bufs {
				done := b.await(t)
				ended[done.Context] = done
			}
			equal(t, 3, len(ended))
			errorIs(t, ended[11].Err, c.want)
			for _, i := range []int{0, 2} {
				noError(t, ended[uint64(10+i)].Err)
				equal(t, "text number x", string(bufs[i][:ended[uint64(10+i)].Len]))
			}
			// And the endpoint goes on.
			b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: bufs[0]})
			a.must(t, fabric.Op{Kind: fabric.OpTaggedInject, Peer: a.peer, Tag: 1, Buf: []byte("again")})
			done := b.done(t)
			equal(t, "again", string(bufs[0][:done.Len]))
			idle(t, a, b)
		})
	}
}

// A message that is too long fails its receive, and what is behind the buffer
// stays as it was.
func truncated(t *trial) {
	a, b := pairOf(t, fabric.TaggedMessages)
	got := mapped(t, 4096)
	for i := range got {
		got[i] = 0xee
	}
	b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got[:40:40]})
	a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: make([]byte, 100)})
	errorIs(t, b.await(t).Err, fabric.ErrTruncated)
	a.done(t)
	for i, v := range got[40:] {
		equal(t, 0xee, v, "byte %d beyond the buffer", i)
	}
}

// A queue is never given more operations than it has entries for.
func boundedQueue(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, fabric.TaggedMessages))
	q := s.queue(t, 16)
	a := s.open(t, s.info, fabric.Bindings{Send: q})
	posts := make([]fabric.Op, q.Size()+1)
	for i := range posts {
		posts[i] = fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(i), Buf: make([]byte, 8)}
		a.register(t, &posts[i])
	}
	a.turn(t, posts)
	noError(t, posts[0].Err)
	equal(t, fabric.Posted, posts[0].Result)
	equal(t, fabric.Refused, posts[q.Size()].Result)
	isTrue(t, q.InFlight() <= q.Size(), "%d of %d", q.InFlight(), q.Size())
}
