package fabrictest

import (
	"context"
	"errors"

	"github.com/weft-go/weft/fabric"
)

var counterCases = []named{
	{"by hand", counterByHand},
	{"of an endpoint", countersOfEndpoint},
	{"remote writes", countedRemoteWrites},
	{"remote reads", countedRemoteReads},
	{"failed operation", countedFailure},
	{"deferred messages", deferredMessages},
	{"deferred rma", deferredRemoteAccess},
	{"deferred atomics", deferredAtomics},
	{"deferred answer", deferredAnswer},
}

// reading is what a counter has counted, and the failures.
func reading(t *trial, c *fabric.Counter) [2]uint64 {
	t.Helper()
	n, err := c.Read()
	noError(t, err)
	e, err := c.Errors()
	noError(t, err)
	return [2]uint64{n, e}
}

// A counter is set, added to and waited for.
func counterByHand(t *trial) {
	c := openSite(t, t.hints(fabric.ReliableDatagram, bothMessages)).counter(t)
	equal(t, [2]uint64{}, reading(t, c))
	noError(t, c.Wait(t.Context(), 0))
	noError(t, c.Add(5))
	noError(t, c.Add(2))
	equal(t, [2]uint64{7, 0}, reading(t, c))
	noError(t, c.Wait(t.soon(), 7))
	noError(t, c.Set(3))
	noError(t, c.AddErrors(2))
	equal(t, [2]uint64{3, 2}, reading(t, c))
	noError(t, c.SetErrors(0))
	equal(t, [2]uint64{3, 0}, reading(t, c))

	ended := make(chan error, 1)
	ctx := t.soon()
	go func() { ended <- c.Wait(ctx, 5) }()
	noError(t, c.Add(1))
	noError(t, c.Add(1))
	noError(t, <-ended, "what is added elsewhere ends a wait")
}

// Each kind of operation has its counter.
func countersOfEndpoint(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess))
	sent, written, read, received := s.counter(t), s.counter(t), s.counter(t), s.counter(t)
	a, b := s.pair(t, []fabric.CounterBinding{
		{Counter: sent, Events: fabric.CountSends},
		{Counter: written, Events: fabric.CountWrites},
		{Counter: read, Events: fabric.CountReads},
	}, []fabric.CounterBinding{{Counter: received, Events: fabric.CountReceives}})
	errorIs(t, sent.Close(), fabric.ErrBusy)
	for range 3 {
		b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)})
		a.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: make([]byte, 8)})
		a.done(t)
		b.done(t)
	}
	_, remote := s.shared(t, 4096)
	for range 2 {
		a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(8), Remote: remote, Flags: fabric.DeliveryComplete})
		a.done(t)
	}
	a.must(t, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: make([]byte, 8), Remote: remote})
	a.done(t)
	for _, c := range []struct {
		counter *fabric.Counter
		want    uint64
	}{{sent, 3}, {received, 3}, {written, 2}, {read, 1}} {
		noError(t, c.counter.Wait(t.soon(), c.want))
		equal(t, [2]uint64{c.want, 0}, reading(t, c.counter))
	}
	idle(t, a, b)
}

// What a peer writes here is counted here.
func countedRemoteWrites(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess|fabric.RemoteMemoryEvents))
	c := s.counter(t)
	a, b := s.pair(t, nil, []fabric.CounterBinding{{Counter: c, Events: fabric.CountRemoteWrites}})
	_, remote := s.shared(t, 4096)
	for range 2 {
		a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(8), Remote: remote, Flags: fabric.DeliveryComplete})
		a.done(t)
	}
	noError(t, c.Wait(t.soon(), 2))
	equal(t, [2]uint64{2, 0}, reading(t, c))
	idle(t, a, b)
}

// What a peer reads here is counted here, and what it writes is not among that.
func countedRemoteReads(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess|fabric.RemoteMemoryEvents))
	c := s.counter(t)
	a, b := s.pair(t, nil, []fabric.CounterBinding{{Counter: c, Events: fabric.CountRemoteReads}})
	_, remote := s.shared(t, 4096)
	a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(8), Remote: remote, Flags: fabric.DeliveryComplete})
	a.done(t)
	for range 3 {
		a.must(t, fabric.Op{Kind: fabric.OpRead, Peer: a.peer, Buf: make([]byte, 8), Remote: remote})
		a.done(t)
	}
	noError(t, c.Wait(t.soon(), 3))
	equal(t, [2]uint64{3, 0}, reading(t, c))
	idle(t, a, b)
}

// An operation that fails is counted as such, and ends a wait.
func countedFailure(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, remoteAccess))
	c := s.counter(t)
	a, _ := s.pair(t, []fabric.CounterBinding{{Counter: c, Events: fabric.CountWrites}}, nil)
	_, remote := s.shared(t, 4096)
	remote.Key += 1000
	a.must(t, fabric.Op{Kind: fabric.OpWrite, Peer: a.peer, Buf: counting(8), Remote: remote, Flags: fabric.DeliveryComplete})
	anError(t, a.await(t).Err)
	isTrue(t, !errors.Is(c.Wait(t.soon(), 1), context.DeadlineExceeded), "the wait does not end")
	equal(t, [2]uint64{0, 1}, reading(t, c))
}
