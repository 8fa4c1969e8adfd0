package fabrictest

import (
	"encoding/binary"

	"github.com/weft-go/weft/fabric"
)

func deferredHints(t *trial, more fabric.Capabilities) fabric.Hints {
	return t.hints(fabric.ReliableDatagram, remoteAccess|fabric.TriggeredOperations|more)
}

// later defers an operation until the counter has reached 1.
func (s *station) later(t *trial, op fabric.Op, c *fabric.Counter) *fabric.Deferred {
	t.Helper()
	s.register(t, &op)
	f, err := s.e.Defer(op, fabric.Trigger{Counter: c, Threshold: 1}, nil)
	noError(t, err)
	s.site.kept = append(s.site.kept, f)
	begun, err := f.Begun()
	noError(t, err)
	complete, err := f.Complete()
	noError(t, err)
	isTrue(t, !begun && !complete, "it did not wait")
	return f
}

// ended waits for a deferred operation, and closes it.
func ended(t *trial, f *fabric.Deferred) {
	t.Helper()
	noError(t, f.Counter().Wait(t.soon(), 1))
	complete, err := f.Complete()
	noError(t, err)
	isTrue(t, complete, "its counter says so")
	noError(t, f.Close())
}

func word(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// Messages wait for their counters, on both sides.
func deferredMessages(t *trial) {
	s := openSite(t, deferredHints(t, 0))
	a, b := s.pair(t, nil, nil)
	for _, kinds := range [][2]fabric.OpKind{{fabric.OpSend, fabric.OpReceive}, {fabric.OpTaggedSend, fabric.OpTaggedReceive}} {
		forA, forB := s.counter(t), s.counter(t)
		got := make([]byte, 8)
		r := b.later(t, fabric.Op{Kind: kinds[1], Peer: fabric.AddressAny, Tag: 3, Buf: got}, forB)
		w := a.later(t, fabric.Op{Kind: kinds[0], Peer: a.peer, Tag: 3, Vector: [][]byte{[]byte("de"), []byte("ferred")}}, forA)
		noError(t, forA.Add(1))
		ended(t, w)
		noError(t, forB.Add(1))
		ended(t, r)
		equal(t, "deferred", string(got))
		idle(t, a, b)
		zero(t, a.q.Strays()+b.q.Strays(), "no completion in a queue")
	}
}

// So do accesses to a peer's memory.
func deferredRemoteAccess(t *trial) {
	s := openSite(t, deferredHints(t, 0))
	a, _ := s.pair(t, nil, nil)
	memory, remote := s.shared(t, 4096)
	c := s.counter(t)
	w := a.later(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: word(40), Remote: remote}, c)
	equal(t, word(0), memory[:8])
	noError(t, c.Set(1))
	ended(t, w)
	equal(t, word(40), memory[:8])

	got, again := make([]byte, 8), s.counter(t)
	r := a.later(t, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: got, Remote: remote}, again)
	noError(t, again.Set(1))
	ended(t, r)
	equal(t, word(40), got)
}

func deferredAtomics(t *trial) {
	s := openSite(t, deferredHints(t, fabric.Atomics))
	a, _ := s.pair(t, nil, nil)
	memory, remote := s.shared(t, 4096)
	copy(memory, word(5))
	result := make([]byte, 8)
	for _, step := range []struct {
		kind         fabric.OpKind
		op           fabric.AtomicOp
		value        uint64
		before, then uint64
	}{
		{fabric.OpAtomic, fabric.Sum, 2, 0, 7},
		{fabric.OpFetch, fabric.Sum, 3, 7, 10},
		{fabric.OpCompare, fabric.CompareSwap, 99, 10, 99},
	} {
		clear(result)
		with := &fabric.Atomic{Type: fabric.Uint64, Operation: step.op}
		if step.kind != fabric.OpAtomic {
			with.Result = result
		}
		if step.kind == fabric.OpCompare {
			with.Compare = word(10)
		}
		c := s.counter(t)
		f := a.later(t, fabric.Op{Kind: step.kind, Peer: a.peer, Buf: word(step.value), Remote: remote, Atomic: with}, c)
		noError(t, c.Add(1))
		ended(t, f)
		equal(t, word(step.then), memory[:8])
		equal(t, word(step.before), result)
	}
}

// A counter of an endpoint sets things off by itself: what arrives is sent back,
// and the program does nothing in between.
func deferredAnswer(t *trial) {
	s := openSite(t, deferredHints(t, 0))
	received, done := s.counter(t), s.counter(t)
	a, b := s.pair(t, nil, []fabric.CounterBinding{{Counter: received, Events: fabric.CountReceives}})
	buf, back := make([]byte, 4), make([]byte, 4)
	op := fabric.Op{Kind: fabric.OpTaggedSend, Peer: b.peer, Tag: 2, Buf: buf}
	b.register(t, &op)
	f, err := b.e.Defer(op, fabric.Trigger{Counter: received, Threshold: 1}, done)
	noError(t, err)
	s.kept = append(s.kept, f)
	b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: buf})
	a.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: back, Context: 2})
	a.say(t, 1, "ping")
	noError(t, done.Wait(t.soon(), 1))
	equal(t, 2, a.done(t).Context)
	equal(t, "ping", string(back))
	noError(t, f.Close())
}
