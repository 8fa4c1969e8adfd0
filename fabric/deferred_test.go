package fabric_test

import (
	"net"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// deferring opens a site on the one provider here that has deferred operations.
func deferring(t *testing.T, forA, forB []fabric.CounterBinding) *site {
	t.Helper()
	return openSite(t, deferringHints(), forA, forB)
}

func deferringHints() fabric.Hints {
	hints := rmaHints("sockets")
	hints.Capabilities |= fabric.TriggeredOperations | fabric.Atomics
	return hints
}

// later defers an operation of a's until the counter has reached 1.
func (s *site) later(t *testing.T, p *station, op fabric.Op, c *fabric.Counter) *fabric.Deferred {
	t.Helper()
	f, err := p.e.Defer(op, fabric.Trigger{Counter: c, Threshold: 1}, nil)
	require.NoError(t, err)
	begun, err := f.Begun()
	require.NoError(t, err)
	complete, err := f.Complete()
	require.NoError(t, err)
	require.False(t, begun || complete)
	return f
}

// One counter counts the ends of several operations, and sets off the next ones.
func TestDeferredStages(t *testing.T) {
	s := deferring(t, nil, nil)
	memory := arena(t, 4096).Bytes()
	r := register(t, s.domain, fabric.RegionConfig{Access: fabric.AccessAll}, memory)
	start, first, second, sum := openCounter(t, s.domain), openCounter(t, s.domain), openCounter(t, s.domain), openCounter(t, s.domain)
	var all []*fabric.Deferred
	write := func(i int, when, done *fabric.Counter, n uint64) {
		f, err := s.a.e.Defer(fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: []byte{byte(i)}, Remote: at(t, r, i, 1)}, fabric.Trigger{Counter: when, Threshold: n}, done)
		require.NoError(t, err)
		all = append(all, f)
	}
	for i := range 3 {
		write(i+1, start, first, 1)
	}
	write(4, first, second, 3)
	add, err := sum.DeferAdd(10, fabric.Trigger{Counter: second, Threshold: 1})
	require.NoError(t, err)
	set, err := sum.DeferSet(3, fabric.Trigger{Counter: start, Threshold: 1})
	require.NoError(t, err)
	all = append(all, add, set)
	require.Nil(t, add.Counter())
	require.ErrorIs(t, first.Set(0), fabric.ErrBusy, "it counts deferred operations")
	require.ErrorIs(t, first.Add(1), fabric.ErrBusy)
	require.ErrorIs(t, start.Close(), fabric.ErrBusy)
	require.NoError(t, start.Add(1))
	require.NoError(t, sum.Wait(within(t, 30*time.Second), 13))
	require.Equal(t, []byte{0, 1, 2, 3, 4, 0}, memory[:6])
	for _, f := range all {
		complete, err := f.Complete()
		require.NoError(t, err)
		require.True(t, complete)
	}
	for _, f := range all {
		require.NoError(t, f.Close())
	}
	require.NoError(t, first.Set(0), "free again")
	// What is due already begins at once.
	write(5, start, first, 1)
	require.NoError(t, first.Wait(within(t, 30*time.Second), 1))
	require.Equal(t, byte(5), memory[5])
	pieces := []fabric.RemotePart{{Remote: at(t, r, 100, 1), Len: 1}, {Remote: at(t, r, 200, 2), Len: 2}}
	several := fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: []byte{6, 7, 8}, Remotes: pieces}
	f, err := s.a.e.Defer(several, fabric.Trigger{Counter: start, Threshold: 1}, first)
	require.NoError(t, err)
	require.NoError(t, first.Wait(within(t, 30*time.Second), 2))
	require.Equal(t, []byte{6, 7, 8}, []byte{memory[100], memory[200], memory[201]})
	require.NoError(t, f.Close())
	several.Buf = several.Buf[:2]
	_, err = s.a.e.Defer(several, fabric.Trigger{Counter: start, Threshold: 1}, first)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.NoError(t, all[len(all)-1].Close())
	now, err := sum.DeferAdd(1, fabric.Trigger{Counter: start})
	require.NoError(t, err)
	require.Equal(t, [2]uint64{14, 0}, reading(t, sum))
	require.NoError(t, now.Close())
}

// sockets puts the failure of a deferred operation into the queue, where it must
// not be taken for the end of another operation.
func TestDeferredFailure(t *testing.T) {
	s := deferring(t, nil, nil)
	_, where := shared(t, s.b, 4096)
	where.Key += 1000
	c := openCounter(t, s.domain)
	bad := fabric.Op{Kind: fabric.OpWrite, Peer: s.a.peer, Buf: make([]byte, 8), Remote: where}
	f, another := s.later(t, s.a, bad, c), s.later(t, s.a, bad, c)
	// Ordinary operations, in slots of which one has the number of the threshold.
	var tokens []fabric.Token
	for range 3 {
		tokens = append(tokens, s.a.must(t, s.b, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 9, Buf: make([]byte, 8)}).Token)
	}
	require.True(t, slices.ContainsFunc(tokens, func(t fabric.Token) bool { return uint32(t) == 1 }))
	require.NoError(t, c.Add(1))
	ctx := within(t, 30*time.Second)
	for ctx.Err() == nil && s.a.q.Strays() == 0 {
		n, err := s.a.e.Turn(nil, make([]fabric.Completion, 1), 0)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	require.NoError(t, ctx.Err())
	require.ErrorIs(t, f.Close(), fabric.ErrBusy)
	require.NoError(t, s.a.e.Close())
	require.NoError(t, f.Close())
	require.NoError(t, another.Close())
	// What is still in the queue may name them.
	var buf [4]fabric.Completion
	n, err := s.a.q.Read(buf[:], 1000)
	require.NoError(t, err)
	require.Zero(t, n)
}

// Close never takes away what the provider may still use, and says what to do.
func TestDeferredClose(t *testing.T) {
	t.Run("not begun", func(t *testing.T) {
		s := deferring(t, nil, nil)
		c := openCounter(t, s.domain)
		f := s.later(t, s.a, fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.a.peer, Buf: make([]byte, 8)}, c)
		require.ErrorIs(t, f.Cancel(), fabric.ErrNotSupported)
		require.ErrorIs(t, s.domain.FlushDeferred(), fabric.ErrNotSupported)
		err := f.Close()
		require.ErrorIs(t, err, fabric.ErrBusy)
		require.ErrorContains(t, err, "reach 1")
		require.ErrorIs(t, f.Counter().Close(), fabric.ErrBusy)
		require.ErrorIs(t, c.Close(), fabric.ErrBusy)
		require.NoError(t, s.a.e.Close())
		// Nothing may set it off any more, with the endpoint gone.
		require.ErrorIs(t, c.Add(1), net.ErrClosed)
		require.ErrorIs(t, c.Set(1), net.ErrClosed)
		require.NoError(t, f.Close())
		_, err = f.Begun()
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = f.Complete()
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, f.Cancel(), net.ErrClosed)
	})
	t.Run("a receive that waits", func(t *testing.T) {
		s := deferring(t, nil, nil)
		c := openCounter(t, s.domain)
		f := s.later(t, s.a, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: make([]byte, 8)}, c)
		require.NoError(t, c.Add(1))
		require.NoError(t, f.Close(), "it is cancelled")
		s.a.turn(t, nil)
		require.Empty(t, s.a.got)
	})
	t.Run("a change of a counter", func(t *testing.T) {
		s := openDomain(t, deferringHints())
		c, target := openCounter(t, s.domain), openCounter(t, s.domain)
		f, err := target.DeferAdd(1, fabric.Trigger{Counter: c, Threshold: 1})
		require.NoError(t, err)
		require.ErrorIs(t, f.Close(), fabric.ErrBusy)
		require.NoError(t, c.Add(1))
		require.NoError(t, f.Close())
		require.Equal(t, [2]uint64{1, 0}, reading(t, target))
	})
}

func TestDeferredThatCannotBe(t *testing.T) {
	s, other := deferring(t, nil, nil), openDomain(t, deferringHints())
	c, strange := openCounter(t, s.domain), openCounter(t, other.domain)
	send := fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.a.peer, Buf: make([]byte, 8)}
	when := fabric.Trigger{Counter: c, Threshold: 1}
	for name, try := range map[string]func() error{
		"no counter":       func() error { _, err := s.a.e.Defer(send, fabric.Trigger{}, nil); return err },
		"another domain's": func() error { _, err := s.a.e.Defer(send, fabric.Trigger{Counter: strange}, nil); return err },
		"too high": func() error {
			_, err := s.a.e.Defer(send, fabric.Trigger{Counter: c, Threshold: 1 << 31}, nil)
			return err
		},
		"done elsewhere":      func() error { _, err := s.a.e.Defer(send, when, strange); return err },
		"done by the trigger": func() error { _, err := s.a.e.Defer(send, when, c); return err },
		"an inject":           func() error { _, err := s.a.e.Defer(fabric.Op{Kind: fabric.OpTaggedInject}, when, nil); return err },
		"no kind":             func() error { _, err := s.a.e.Defer(fabric.Op{}, when, nil); return err },
		"a peek": func() error {
			_, err := s.a.e.Defer(fabric.Op{Kind: fabric.OpTaggedReceive, Flags: fabric.Peek}, when, nil)
			return err
		},
		"a circle of one":     func() error { _, err := c.DeferAdd(1, when); return err },
		"posted by an inject": func() error { return s.a.e.PostWhen(&fabric.Op{Kind: fabric.OpTaggedInject}, when) },
		"no operation":        func() error { return s.a.e.PostWhen(nil, when) },
		"more than it counts": func() error { _, err := c.DeferAdd(1<<31, when); return err },
	} {
		require.ErrorIs(t, try(), fabric.ErrInvalid, name)
	}
	require.Len(t, counters(), 2, "no counter of an operation that was not deferred is left")

	// Counters in a circle would make the provider wait for itself.
	d, e := openCounter(t, s.domain), openCounter(t, s.domain)
	far := func(c *fabric.Counter) fabric.Trigger { return fabric.Trigger{Counter: c, Threshold: 1} }
	one, err := d.DeferAdd(1, far(c))
	require.NoError(t, err)
	two, err := e.DeferAdd(1, far(d))
	require.NoError(t, err)
	_, err = c.DeferSet(1, far(e))
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.ErrorContains(t, err, "circle")

	// A group of counters belongs to one endpoint.
	f, err := s.a.e.Defer(send, far(e), nil)
	require.NoError(t, err)
	_, err = s.b.e.Defer(send, far(c), nil)
	require.ErrorIs(t, err, fabric.ErrInvalid)
	require.ErrorContains(t, err, "another endpoint")
	require.NoError(t, s.a.e.Close())
	for _, f := range []*fabric.Deferred{one, two, f} {
		require.NoError(t, f.Close())
	}
}

func counters() (list []string) {
	for _, h := range fabric.OpenHandles() {
		if h.Kind == "counter" {
			list = append(list, h.Stack)
		}
	}
	return list
}

// An operation that is posted for later completes in the queue, like any other.
func TestPostWhen(t *testing.T) {
	s := deferring(t, nil, nil)
	c, forB := openCounter(t, s.domain), openCounter(t, s.domain)
	got := make([]byte, 4)
	receive := fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got, Context: 1}
	require.NoError(t, s.b.e.PostWhen(&receive, fabric.Trigger{Counter: forB, Threshold: 2}))
	require.Equal(t, fabric.Posted, receive.Result)
	require.Zero(t, receive.Flags)
	send := fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.a.peer, Tag: 1, Buf: []byte("late"), Context: 2}
	require.NoError(t, s.a.e.PostWhen(&send, fabric.Trigger{Counter: c, Threshold: 1}))
	require.Equal(t, fabric.Posted, send.Result)
	for range 100 {
		s.a.turn(t, nil)
		s.b.turn(t, nil)
	}
	require.Empty(t, append(s.a.got, s.b.got...))
	require.NoError(t, c.Add(1))
	require.EqualValues(t, 2, s.a.await(t, s.b).Context)
	require.NoError(t, forB.Add(2))
	arrived := s.b.await(t, s.a)
	require.EqualValues(t, 1, arrived.Context)
	require.Equal(t, "late", string(got[:arrived.Len]))

	// One that never begins ends with its endpoint.
	require.NoError(t, s.a.e.PostWhen(&send, fabric.Trigger{Counter: c, Threshold: 99}))
	require.ErrorIs(t, c.Close(), fabric.ErrBusy)
	require.NoError(t, forB.Close(), "nothing waits for it any more")
	require.NoError(t, s.a.e.Close())
	require.ErrorIs(t, c.Add(100), net.ErrClosed)
	send.Result, send.Err = fabric.Posted, nil
	require.ErrorIs(t, s.a.e.PostWhen(&send, fabric.Trigger{Counter: c, Threshold: 99}), net.ErrClosed)
	require.Equal(t, fabric.Failed, send.Result, "not what the last post has said")
	require.ErrorIs(t, send.Err, net.ErrClosed)
}

// Where the capability is missing, it is said, and nothing reaches the provider.
func TestDeferredElsewhere(t *testing.T) {
	each(t, func(t *testing.T, provider string) {
		_, err := fabric.Discover(fabric.Hints{Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: fabric.TriggeredOperations, MemoryMode: everyMemoryMode})
		if provider == "sockets" {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, fabric.ErrNotFound, "the provider has them now: test it")
		s := openSite(t, rmaHints(provider), nil, nil)
		c := openCounter(t, s.domain)
		when := fabric.Trigger{Counter: c, Threshold: 1}
		op := fabric.Op{Kind: fabric.OpTaggedSend, Peer: s.a.peer, Buf: make([]byte, 8)}
		_, err = s.a.e.Defer(op, when, nil)
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		_, err = c.DeferAdd(1, when)
		require.ErrorIs(t, err, fabric.ErrNotSupported)
		require.ErrorIs(t, s.a.e.PostWhen(&op, when), fabric.ErrNotSupported)
		require.ErrorIs(t, s.domain.FlushDeferred(), fabric.ErrNotSupported)
	})
}

// The values of a deferred atomic operation may be in several buffers.
func TestDeferredAtomicsOfVectors(t *testing.T) {
	inProcess(t, func(t *testing.T) {
		s := deferring(t, nil, nil)
		bytes, remote := shared(t, s.b, 4096)
		there := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(bytes))), 4)
		for _, kind := range []fabric.OpKind{fabric.OpAtomic, fabric.OpFetch, fabric.OpCompare} {
			copy(there, []uint64{1, 2, 3, 4})
			before := make([]uint64, 3)
			a := &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum}
			want := []uint64{11, 22, 33, 4}
			if kind != fabric.OpAtomic {
				a.Result = fabric.BytesOf(before)
			}
			if kind == fabric.OpCompare {
				a.Operation, a.Compare = fabric.CompareSwap, fabric.BytesOf([]uint64{1, 9, 3})
				want = []uint64{10, 2, 30, 4}
			}
			c := openCounter(t, s.domain)
			f := s.later(t, s.a, fabric.Op{
				Kind: kind, Peer: s.a.peer, Remote: remote, Atomic: a,
				Vector: [][]byte{fabric.BytesOf([]uint64{10, 20}), fabric.BytesOf([]uint64{30})},
			}, c)
			require.NoError(t, c.Add(1))
			require.NoError(t, f.Counter().Wait(within(t, 30*time.Second), 1))
			require.NoError(t, f.Close())
			require.Equal(t, want, there, kind)
			if kind != fabric.OpAtomic {
				require.Equal(t, []uint64{1, 2, 3}, before)
			}
		}
	})
}

// An operation for later is refused for what it would be refused for now.
func TestDeferredIsRefusedLikeOthers(t *testing.T) {
	s := deferring(t, nil, nil)
	refused := func(e *fabric.Endpoint, op fabric.Op, why string) {
		t.Helper()
		when := fabric.Trigger{Counter: openCounter(t, s.domain), Threshold: 1}
		posts := []fabric.Op{op}
		_, err := e.Turn(posts, nil, 0)
		require.NoError(t, err)
		require.ErrorContains(t, posts[0].Err, why)
		require.NoError(t, e.PostWhen(&op, when))
		require.Equal(t, fabric.Failed, op.Result)
		require.Equal(t, posts[0].Err, op.Err)
		f, err := e.Defer(op, when, nil)
		if f != nil {
			t.Cleanup(func() { require.NoError(t, f.Close()) })
		}
		require.ErrorContains(t, err, why)
		require.ErrorIs(t, err, op.Err.(*fabric.Error).Errno)
	}
	refused(s.a.e, fabric.Op{Kind: fabric.OpTaggedSend, Peer: 77, Buf: make([]byte, 8)}, "no peer")

	// Endpoints that do nothing in one direction.
	v, q := vectorOf(t, s.domain), queueOf(t, s.domain, 8)
	sends, receives := endpointOf(t, s.domain), endpointOf(t, s.domain)
	require.NoError(t, sends.EnableWith(fabric.Bindings{Vector: v, Events: s.events, Send: q}))
	require.NoError(t, receives.EnableWith(fabric.Bindings{Vector: v, Events: s.events, Receive: q}))
	peer := insert(t, v, s.b.e)
	refused(sends, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)}, "no completion queue")
	refused(receives, fabric.Op{Kind: fabric.OpTaggedSend, Peer: peer, Buf: make([]byte, 8)}, "no completion queue")
}
