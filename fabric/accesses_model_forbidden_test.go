package fabric_test

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
)

// What peers may not do, and what begins when a counter says so.

// whenForbidden says what becomes of an access that the target refuses.
type whenForbidden int

const (
	untried whenForbidden = iota
	// fails: it has an error, and everything else goes on.
	fails
	// disconnects: all that is under way between the two ends, and what comes later is carried again.
	disconnects
)

func forbiddenOn(provider string) whenForbidden {
	switch {
	case provider == "sockets":
		return fails
	case strings.HasPrefix(provider, "tcp"):
		return disconnects
	}
	return untried // shm does not answer, and efa does not answer all
}

// forbidden has a side do what it may not: nothing changes.
func (m *accessModel) forbidden(t *rapid.T) {
	on := forbiddenOn(m.info.Provider())
	if on == untried {
		return
	}
	if on == disconnects {
		m.settle(t)
	}
	kind := rapid.SampledFrom([]fabric.OpKind{fabric.OpRead, fabric.OpWrite, fabric.OpFetch}).Draw(t, "kind")
	a := m.newAccess(t, kind)
	// For what is carried afterwards.
	allowed, _, _ := m.place(t, a.to, fabric.AccessRemoteRead, 8, 8)
	length := max(8, accessLength(t)/8*8)
	if kind == fabric.OpFetch {
		length = 8
	}
	r := rapid.SampledFrom(a.to.regions).Draw(t, "region")
	a.op.Remote = fabric.Remote{Address: r.remote.Address, Key: r.remote.Key}
	why := rapid.SampledFrom([]string{"key", "closed", "end", "access"}).Draw(t, "why")
	may := fabric.AccessRemoteWrite
	if kind == fabric.OpRead {
		may = fabric.AccessRemoteRead
	}
	switch {
	case why == "closed" && len(a.to.closed) > 0:
		a.op.Remote = rapid.SampledFrom(a.to.closed).Draw(t, "closed")
	case why == "end":
		a.op.Remote.Address += uint64(r.to-r.from) - uint64(rapid.IntRange(0, min(7, r.to-r.from)).Draw(t, "within"))
	case why == "access" && !r.Access().Has(may) && r.to-r.from >= length && !m.sendable(r, kind):
	default:
		a.op.Remote.Key += 1 << 20
	}
	if m.info.KeySize() < 8 && a.op.Remote.Key>>(8*m.info.KeySize()) != 0 {
		return
	}
	a.fails, a.uncertain = true, on == disconnects && kind == fabric.OpWrite
	content := a.pattern(length)
	m.mine(t, a, content, content, 8)
	if kind == fabric.OpFetch {
		a.op.Atomic = &fabric.Atomic{Type: fabric.Uint64, Operation: fabric.Sum}
		a.op.Atomic.Result, a.op.Atomic.ResultDescriptor = m.buffer(a, false, content, content)
	}
	t.Logf("forbidden, %s: %v", why, a)
	m.flush(t, a.from)
	a.from.posts = append(a.from.posts, a)
	if on == fails {
		what := countedAs(kind)
		if kind == fabric.OpFetch {
			what = fabric.CountWrites // though those that succeed are reads
		}
		a.from.failed[what]++
	}
	m.flush(t, a.from)
	if on == disconnects {
		m.recover(t, a, allowed.Remote)
	}
}

// sendable says of memory that it can be read all the same: ofi_rxm gives itself the right, of what is registered for sending.
func (m *accessModel) sendable(r *accessRegion, kind fabric.OpKind) bool {
	return kind == fabric.OpRead && r.Access().Has(fabric.AccessSend)
}

func countedAs(kind fabric.OpKind) fabric.CounterEvents {
	if kind == fabric.OpWrite {
		return fabric.CountWrites
	}
	return fabric.CountReads
}

func countedThere(kind fabric.OpKind) fabric.CounterEvents {
	if kind == fabric.OpWrite {
		return fabric.CountRemoteWrites
	}
	return fabric.CountRemoteReads
}

// recover waits for the end of an access that ends the connection, and until there is another one.
func (m *accessModel) recover(t *rapid.T, a *access, allowed fabric.Remote) {
	m.until(t, func() string { return "the end of what is forbidden" }, func() bool { return len(a.from.flying) == 0 })
	deadline := time.Now().Add(20 * time.Second)
	for carried := false; !carried; {
		require.True(t, time.Now().Before(deadline), "nothing is carried any more")
		posts := []fabric.Op{{Kind: fabric.OpRead, Peer: a.op.Peer, Remote: allowed, Buf: make([]byte, 8)}}
		var buf [4]fabric.Completion
		ended := false
		for !ended && time.Now().Before(deadline) {
			n, err := a.from.e.Turn(posts, buf[:], 0)
			require.NoError(t, err)
			if len(posts) > 0 && posts[0].Result == fabric.Posted {
				posts = nil
			} else if len(posts) > 0 && posts[0].Result == fabric.Failed {
				break
			}
			ended = n > 0
			carried = n > 0 && buf[0].Err == nil
			for _, s := range m.sides {
				if s != a.from {
					m.read(t, s, nil)
				}
			}
		}
	}
	for _, s := range m.sides {
		s.strays = s.q.Strays()
		for what, c := range s.counters {
			n, err := c.Read()
			require.NoError(t, err)
			failures, err := c.Errors()
			require.NoError(t, err)
			s.counts[what], s.failed[what] = n, failures
		}
	}
}

// defer has an access begin when its side's counter has reached a number, which it does before all is quiet.
func (m *accessModel) later(t *rapid.T) {
	if m.limits.caps&fabric.TriggeredOperations == 0 {
		return
	}
	kind := rapid.SampledFrom([]fabric.OpKind{fabric.OpRead, fabric.OpWrite}).Draw(t, "kind")
	a := m.newAccess(t, kind)
	need := fabric.AccessRemoteWrite
	if kind == fabric.OpRead {
		need = fabric.AccessRemoteRead
	}
	m.places(t, a, need, accessLength(t), 1, false)
	a.deferred = true
	m.clear(t, a)
	if kind == fabric.OpRead {
		m.mine(t, a, a.pattern(a.length()), a.now(), 1)
	} else {
		a.after = a.pattern(a.length())
		m.mine(t, a, a.after, a.after, 1)
		at := 0
		for _, s := range a.spans {
			at += copy(s.side.want[s.from:s.to], a.after[at:])
		}
	}
	s := a.from
	when := fabric.Trigger{Counter: s.trigger, Threshold: s.triggered + uint64(rapid.IntRange(1, 3).Draw(t, "threshold"))}
	for _, r := range a.regions {
		r.uses++
	}
	m.flying = append(m.flying, a)
	a.to.counts[countedThere(kind)]++
	m.flush(t, s)
	if rapid.Bool().Draw(t, "in the queue") {
		t.Logf("when %d: %v", when.Threshold, a)
		s.flying[a.number] = a
		s.counts[countedAs(kind)]++
		require.NoError(t, s.e.PostWhen(&a.op, when))
		require.Equal(t, fabric.Posted, a.op.Result)
		return
	}
	t.Logf("deferred to %d: %v", when.Threshold, a)
	f, err := s.e.Defer(a.op, when, nil)
	require.NoError(t, err)
	m.begun = append(m.begun, accessDeferred{f, a})
}

// accessDeferred is one that has no completion.
type accessDeferred struct {
	*fabric.Deferred
	of *access
}

// trigger has everything begin that was put off.
func (m *accessModel) trigger(t *rapid.T) {
	for _, s := range m.sides {
		if s.trigger != nil && len(m.flying) > 0 {
			s.triggered += 3
			require.NoError(t, s.trigger.Add(3))
		}
	}
	for _, f := range m.begun {
		m.until(t, func() string { return f.of.String() }, func() bool {
			complete, err := f.Complete()
			require.NoError(t, err)
			return complete
		})
		require.NoError(t, f.Close())
		f.of.there(t, "when it is counted")
		f.of.finish(t)
	}
	m.begun = nil
}
