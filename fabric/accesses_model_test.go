package fabric_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// A model of what operations make of the memory of peers: that of each side is plain memory beside, which
// each operation changes when it is posted. Operations that are under way together do not touch the same
// bytes, unless the provider keeps their order, or a fence does.

// accessLimits are what a provider can be asked for.
type accessLimits struct {
	caps fabric.Capabilities
	mode fabric.MemoryMode
	// counted is what counters count.
	counted fabric.CounterEvents
	// delivered says that an atomic operation that fetches nothing can be told to be complete when it is done.
	delivered bool
}

// modelMemory is how much each side has.
const modelMemory = 256 << 10

// counted are what the counters of a side count, in their order.
var counted = []fabric.CounterEvents{fabric.CountReads, fabric.CountWrites, fabric.CountRemoteReads, fabric.CountRemoteWrites}

// accessSide is an endpoint, its memory as it is and as it should be, and the regions of it.
type accessSide struct {
	*station
	number       int
	peers        []fabric.Address // by the sides' numbers
	memory, want []byte
	regions      []*accessRegion
	closed       []fabric.Remote // what is of no region any more
	counters     map[fabric.CounterEvents]*fabric.Counter
	counts       map[fabric.CounterEvents]uint64
	failed       map[fabric.CounterEvents]uint64
	trigger      *fabric.Counter // where the provider has operations that wait for one
	triggered    uint64
	strays       uint64 // of connections that have ended
	mayMiss      uint64 // what of CountWrites the provider may leave out

	// Memory for the buffers of operations, from which those in flight have got theirs.
	own       []byte
	ownRegion *fabric.Region
	ownUsed   int

	posts    []*access          // that are to be posted
	flying   map[uint64]*access // by their contexts
	arrivals map[uint64]*access // by their immediates
}

// accessRegion is one of a side's.
type accessRegion struct {
	*fabric.Region
	from, to int
	remote   fabric.RemoteRegion
	uses     int // by operations that are under way
}

// accessSpan is a piece of a side's memory.
type accessSpan struct {
	side     *accessSide
	from, to int
}

func (s accessSpan) overlaps(o accessSpan) bool {
	return s.side == o.side && s.from < o.to && o.from < s.to
}

// accessBuffer is memory of an operation's own.
type accessBuffer struct {
	memory []byte // with guard bytes behind
	want   []byte // when the operation is complete
	own    bool
}

// access is an operation, and what is to come of it.
type access struct {
	op        fabric.Op
	from, to  *accessSide
	number    uint64
	spans     []accessSpan // of the peer's memory
	after     []byte       // what is there then, if it writes
	overtaken bool         // by one that writes there, too
	buffers   []accessBuffer
	regions   []*accessRegion
	epoch     int
	fails     bool // the peer refuses it
	uncertain bool // if it fails, it may not say so
	deferred  bool
}

func (a *access) writes() bool {
	return a.op.Kind != fabric.OpRead && (a.op.Atomic == nil || a.op.Atomic.Operation != fabric.AtomicRead)
}

func (a *access) reads() bool {
	return a.op.Kind == fabric.OpRead || a.op.Kind == fabric.OpFetch || a.op.Kind == fabric.OpCompare
}

func (a *access) injected() bool {
	return a.op.Kind == fabric.OpWriteInject || a.op.Kind == fabric.OpAtomicInject
}

type accessModel struct {
	limits  accessLimits
	info    *fabric.Info
	atomics []atomicChoice
	sides   []*accessSide
	flying  []*access // since all was quiet
	number  uint64
	epochs  map[[2]int]int
	begun   []accessDeferred
}

// newAccessModel opens endpoints that know each other, and themselves: two of a domain and one of another.
func newAccessModel(t *testing.T, provider string, limits accessLimits) *accessModel {
	t.Helper()
	hints := fabric.Hints{
		Provider: provider, Endpoint: fabric.ReliableDatagram, Capabilities: limits.caps,
		MemoryMode: limits.mode, OneThread: true, Source: sourceOn(provider),
	}
	infos, err := fabric.Discover(hints)
	testenv.Need(t, provider+" with "+limits.caps.String(), err)
	m := &accessModel{limits: limits, info: infos[0], epochs: make(map[[2]int]int)}
	f, d := partsOf(t, m.info)
	other, err := f.OpenDomain(m.info)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	for number, domain := range []*fabric.Domain{d, d, other} {
		m.sides = append(m.sides, m.open(t, f, domain, number))
	}
	for _, s := range m.sides {
		for _, o := range m.sides {
			s.peers = append(s.peers, s.insert(t, o.station))
		}
	}
	m.atomics = atomicChoices(m.sides[0].e)
	return m
}

func (m *accessModel) open(t *testing.T, f *fabric.Fabric, d *fabric.Domain, number int) *accessSide {
	t.Helper()
	s := &accessSide{
		station: &station{info: m.info, fabric: f, domain: d, events: eventsOf(t, f)}, number: number,
		counters: make(map[fabric.CounterEvents]*fabric.Counter), counts: make(map[fabric.CounterEvents]uint64), failed: make(map[fabric.CounterEvents]uint64),
		flying: make(map[uint64]*access), arrivals: make(map[uint64]*access),
	}
	var bindings []fabric.CounterBinding
	for _, what := range counted {
		if m.limits.counted&what != 0 {
			s.counters[what] = openCounter(t, d)
			bindings = append(bindings, fabric.CounterBinding{Counter: s.counters[what], Events: what})
		}
	}
	if m.limits.caps&fabric.TriggeredOperations != 0 {
		s.trigger = openCounter(t, d)
	}
	s.memory, s.want = arena(t, modelMemory).Bytes(), make([]byte, modelMemory)
	s.own = arena(t, 4<<20).Bytes()
	s.ownRegion = register(t, d, fabric.RegionConfig{Access: fabric.AccessAll}, s.own)
	t.Cleanup(func() {
		for _, r := range s.regions {
			require.NoError(t, r.Close())
		}
	})
	s.q, s.v, s.e = queueOf(t, d, 512), vectorOf(t, d), endpointOf(t, d)
	require.NoError(t, s.e.EnableWith(fabric.Bindings{Vector: s.v, Send: s.q, Receive: s.q, Events: s.events, Counters: bindings}))
	return s
}

// until turns all sides until something is so.
func (m *accessModel) until(t *rapid.T, what func() string, done func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !done(); m.turn(t) {
		if time.Now().After(deadline) {
			t.Fatalf("does not come: %s", what())
		}
	}
}

func (m *accessModel) turn(t *rapid.T) {
	for _, s := range m.sides {
		m.read(t, s, nil)
	}
}

// read has a side post and look.
func (m *accessModel) read(t *rapid.T, s *accessSide, posts []fabric.Op) {
	var buf [16]fabric.Completion
	var n int
	var err error
	if m.info.Provider() == "sockets" && len(posts) == 0 && len(s.flying)+len(s.arrivals) > 0 {
		// Its thread needs the core.
		n, err = s.e.TurnWait(nil, buf[:], 1)
	} else {
		n, err = s.e.Turn(posts, buf[:], 0)
	}
	require.NoError(t, err)
	for _, c := range buf[:n] {
		m.completed(t, s, c)
	}
}

// completed is told of each completion of a side's.
func (m *accessModel) completed(t *rapid.T, s *accessSide, c fabric.Completion) {
	if c.Kind == fabric.OpRemoteWrite {
		a := s.arrivals[c.Immediate]
		require.NotNil(t, a, "an immediate of nobody: %+v", c)
		delete(s.arrivals, c.Immediate)
		require.NoError(t, c.Err)
		require.True(t, c.HasImmediate)
		a.there(t, "with the immediate")
		m.told(t, a, c.Len)
		return
	}
	a := s.flying[c.Context]
	require.NotNil(t, a, "a completion of nothing: %+v", c)
	delete(s.flying, c.Context)
	require.Equal(t, a.op.Kind, c.Kind, a)
	require.Zero(t, c.Len, a)
	require.False(t, c.HasImmediate || c.Released, a)
	switch {
	case a.uncertain:
	case a.fails:
		require.Error(t, c.Err, a)
	default:
		require.NoError(t, c.Err, a)
	}
	if a.op.Flags&fabric.DeliveryComplete != 0 || a.reads() {
		a.there(t, "when it is complete")
	}
	a.finish(t)
}

// told looks at how many bytes the peer is told of.
func (m *accessModel) told(t *rapid.T, a *access, n int) {
	want := len(a.after)
	switch p := m.info.Provider(); {
	case p == "sockets":
		want = a.spans[0].to - a.spans[0].from
	case strings.HasPrefix(p, "tcp") && fabric.LibraryVersion().Major < 2:
		want = 0
	}
	require.Equal(t, want, n, a)
}

// there requires the peer's memory to be as the operation leaves it.
func (a *access) there(t *rapid.T, when string) {
	if a.overtaken || a.fails || !a.writes() {
		return
	}
	at := 0
	for _, s := range a.spans {
		n := s.to - s.from
		if !bytes.Equal(a.after[at:at+n], s.side.memory[s.from:s.to]) {
			t.Fatalf("not there %s: %v, %s", when, a, difference(a.after[at:at+n], s.side.memory[s.from:s.to]))
		}
		at += n
	}
}

// finish looks at the operation's own memory, and spoils it.
func (a *access) finish(t *rapid.T) {
	for i, b := range a.buffers {
		n := len(b.memory) - guard
		if !bytes.Equal(b.want, b.memory[:n]) {
			t.Fatalf("buffer %d of %v: %s", i, a, difference(b.want, b.memory[:n]))
		}
		require.Equal(t, bytes.Repeat([]byte{0xee}, guard), b.memory[n:], "behind buffer %d of %v", i, a)
	}
	a.spoil()
}

// spoil has the memory of an operation be something else: nobody may look at it any more.
func (a *access) spoil() {
	for _, b := range a.buffers {
		copy(b.memory, bytes.Repeat([]byte{0xdd}, len(b.memory)-guard))
	}
}

func difference(want, got []byte) string {
	first, last, n := -1, 0, 0
	for i := range want {
		if want[i] != got[i] {
			if first < 0 {
				first = i
			}
			last = i
			n++
		}
	}
	if n == 0 {
		return "the same"
	}
	end := min(first+16, len(want))
	return fmt.Sprintf("%d of %d bytes, from %d to %d: %x, not %x", n, len(want), first, last, got[first:end], want[first:end])
}

func (a *access) String() string {
	what := ""
	if x := a.op.Atomic; x != nil {
		what = fmt.Sprintf(" %v of %v", x.Operation, x.Type)
	}
	where := ""
	for _, s := range a.spans {
		where += fmt.Sprintf(" %d-%d", s.from, s.to)
	}
	n := len(a.op.Buf)
	for _, b := range a.op.Vector {
		n += len(b)
	}
	return fmt.Sprintf("%d: %v%s of %d bytes in %d, flags %v, descriptors %v, from %d to %d at%s of %d regions",
		a.number, a.op.Kind, what, n, len(a.op.Vector), a.op.Flags, a.op.Descriptor != 0 || len(a.op.Descriptors) > 0, a.from.number, a.to.number, where, len(a.regions))
}

// flush posts what is to be posted by a side.
func (m *accessModel) flush(t *rapid.T, s *accessSide) {
	left := s.posts
	s.posts = nil
	posts := make([]fabric.Op, 0, len(left))
	for _, a := range left {
		posts = append(posts, a.op)
		if !a.injected() {
			s.flying[a.number] = a
		}
		if a.op.Flags&fabric.Immediate != 0 {
			a.to.arrivals[a.op.Immediate] = a
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for len(posts) > 0 {
		m.read(t, s, posts)
		// Those of other peers go past one that is refused.
		tried, n := left, 0
		for i, op := range posts {
			a := tried[i]
			if op.Result == fabric.Refused {
				posts[n], left[n] = op, a
				n++
				continue
			}
			if a.fails && op.Result == fabric.Failed {
				delete(s.flying, a.number)
			} else if op.Err != nil {
				t.Fatalf("%v: %v", a, op.Err)
			}
			if a.injected() {
				a.spoil()
			}
		}
		posts, left = posts[:n], left[:n]
		if len(posts) > 0 {
			m.turn(t)
			if time.Now().After(deadline) {
				t.Fatalf("refused for ever: %v", left[0])
			}
		}
	}
}

// openRegion registers a part of a side's memory, or all of it.
func (m *accessModel) openRegion(t *rapid.T, s *accessSide, all bool) {
	r := &accessRegion{to: modelMemory}
	config := fabric.RegionConfig{Access: fabric.AccessAll}
	if !all {
		r.from = rapid.IntRange(0, modelMemory-1).Draw(t, "from")
		r.to = rapid.OneOf(rapid.IntRange(r.from+1, min(r.from+100, modelMemory)), rapid.IntRange(r.from+1, modelMemory)).Draw(t, "to")
		config.Access = rapid.SampledFrom([]fabric.Access{
			fabric.AccessAll, fabric.AccessRemoteRead | fabric.AccessRemoteWrite, fabric.AccessRemoteRead, fabric.AccessRemoteWrite, fabric.AccessMessages,
		}).Draw(t, "access")
	}
	if n := len(s.closed); n > 0 && m.info.MemoryMode()&fabric.ProviderKeys == 0 && rapid.Bool().Draw(t, "the key again") {
		// An access that it is to be refused for would be none.
		m.settle(t)
		key := s.closed[n-1].Key
		config.Key = &key
	}
	var err error
	r.Region, err = s.domain.RegisterMemory(config, s.memory[r.from:r.to:r.to])
	if config.Key != nil && err != nil {
		config.Key = nil
		r.Region, err = s.domain.RegisterMemory(config, s.memory[r.from:r.to:r.to])
	}
	require.NoError(t, err)
	r.remote, err = r.Remote()
	require.NoError(t, err)
	for i, old := range s.closed {
		if old.Key == r.remote.Key {
			s.closed = append(s.closed[:i:i], s.closed[i+1:]...)
			break
		}
	}
	t.Logf("region of %d: %d to %d for %v, key %d", s.number, r.from, r.to, config.Access, r.remote.Key)
	s.regions = append(s.regions, r)
}

// closeRegion closes one that nothing under way is about.
func (m *accessModel) closeRegion(t *rapid.T, s *accessSide) {
	i := rapid.IntRange(0, len(s.regions)-1).Draw(t, "region")
	r := s.regions[i]
	if r.uses > 0 {
		m.settle(t)
	}
	t.Logf("close region of %d: %d to %d, key %d", s.number, r.from, r.to, r.remote.Key)
	require.NoError(t, r.Close())
	s.closed = append(s.closed, fabric.Remote{Address: r.remote.Address, Key: r.remote.Key})
	s.regions = append(s.regions[:i:i], s.regions[i+1:]...)
	if len(s.regions) == 0 {
		m.openRegion(t, s, true)
	}
}
