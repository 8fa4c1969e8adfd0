package fabric_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// world is what a program has opened.
type world struct {
	t     *testing.T
	infos []*fabric.Info
	say   func(format string, args ...any)
	nodes []*node
	// random is what the step says.
	random *rand.Rand
}

// node is one thing that can be closed.
type node struct {
	name   string
	it     any
	close  func() error
	closed bool
}

// What things are part of.
type (
	inFabric struct {
		*fabric.Fabric
		info *fabric.Info
	}
	inDomain struct {
		*fabric.Domain
		f *inFabric
	}
	aQueue struct {
		*fabric.CompletionQueue
		d *inDomain
	}
	aEvents struct {
		*fabric.EventQueue
		f        *inFabric
		requests []*fabric.ConnectionRequest
	}
	aVector struct {
		*fabric.AddressVector
		d     *inDomain
		peers []fabric.Address
		// unused are those, as often as they were inserted, to which nothing was sent.
		unused []fabric.Address
	}
	aRegion struct {
		*fabric.Region
		d      *inDomain
		remote fabric.Remote
		memory []byte
	}
	anEndpoint struct {
		*fabric.Endpoint
		d       *inDomain
		v       *aVector // nil if it is connected
		tokens  []fabric.Token
		enabled bool
	}
	aPassive struct {
		*fabric.PassiveEndpoint
		f *inFabric
	}
)

// closingInfos are the endpoints of a provider, one info a type.
func closingInfos(t *testing.T, provider string) (infos []*fabric.Info) {
	t.Helper()
	for _, hints := range []fabric.Hints{
		{Endpoint: fabric.ReliableDatagram, Capabilities: everything, OrderedSends: true},
		{Endpoint: fabric.Connected, Capabilities: fabric.Messages | fabric.RemoteMemory},
		{Endpoint: fabric.Datagram, Capabilities: fabric.Messages},
	} {
		hints.Provider, hints.Source, hints.MemoryMode = provider, sourceOn(provider), everyMemoryMode
		found, err := fabric.Discover(hints)
		if errors.Is(err, fabric.ErrNotFound) {
			continue
		}
		require.NoError(t, err)
		infos = append(infos, found[0])
	}
	require.NotEmpty(t, infos)
	return infos
}

// number is one below n.
func (w *world) number(n int) int { return w.random.IntN(n) }

// one is one of the things of a type that are open.
func one[T any](w *world, fits func(T) bool) (it T, ok bool) {
	var all []T
	for _, n := range w.nodes {
		if it, is := n.it.(T); is && !n.closed && (fits == nil || fits(it)) {
			all = append(all, it)
		}
	}
	if len(all) == 0 {
		return it, false
	}
	return all[w.number(len(all))], true
}

func (w *world) add(kind string, it any, end func() error) string {
	name := fmt.Sprintf("%s %d", kind, len(w.nodes))
	w.nodes = append(w.nodes, &node{name: name, it: it, close: end})
	return name
}

func (w *world) name(it any) string {
	for _, n := range w.nodes {
		if n.it == it {
			return n.name
		}
	}
	return "?"
}

// Each of these returns one that is open, or opens one. Now and then it opens one
// although there are others.

func (w *world) fabric() *inFabric {
	if f, ok := one[*inFabric](w, nil); ok && w.number(8) > 0 {
		return f
	}
	f := &inFabric{info: w.infos[w.number(len(w.infos))]}
	f.Fabric = must[*fabric.Fabric](w.t)(f.info.OpenFabric())
	w.say("open %s for %v", w.add("fabric", f, f.Close), f.info.Endpoint())
	return f
}

func (w *world) domain() *inDomain {
	if d, ok := one[*inDomain](w, nil); ok && w.number(6) > 0 {
		return d
	}
	d := &inDomain{f: w.fabric()}
	d.Domain = must[*fabric.Domain](w.t)(d.f.OpenDomain(d.f.info))
	w.say("open %s in %s", w.add("domain", d, d.Close), w.name(d.f))
	return d
}

func (w *world) queue(d *inDomain) *aQueue {
	if q, ok := one(w, func(q *aQueue) bool { return q.d == d }); ok && w.number(3) > 0 {
		return q
	}
	q := &aQueue{d: d}
	q.CompletionQueue = must[*fabric.CompletionQueue](w.t)(d.OpenCompletionQueue(64))
	w.say("open %s in %s", w.add("queue", q, q.Close), w.name(d))
	return q
}

func (w *world) events(f *inFabric) *aEvents {
	if q, ok := one(w, func(q *aEvents) bool { return q.f == f }); ok && w.number(3) > 0 {
		return q
	}
	q := &aEvents{f: f}
	q.EventQueue = must[*fabric.EventQueue](w.t)(f.OpenEventQueue())
	w.say("open %s in %s", w.add("events", q, q.Close), w.name(f))
	return q
}

func (w *world) vector(d *inDomain) *aVector {
	if v, ok := one(w, func(v *aVector) bool { return v.d == d }); ok && w.number(3) > 0 {
		return v
	}
	v := &aVector{d: d}
	v.AddressVector = must[*fabric.AddressVector](w.t)(d.OpenAddressVector())
	w.say("open %s in %s", w.add("vector", v, v.Close), w.name(d))
	return v
}

func (w *world) region(d *inDomain) *aRegion {
	if r, ok := one(w, func(r *aRegion) bool { return r.d == d }); ok && w.number(3) > 0 {
		return r
	}
	arena := must[*fabric.Arena](w.t)(fabric.NewArena(64 << 10))
	a := w.add("arena", arena, arena.Close)
	r := &aRegion{d: d, memory: arena.Bytes()}
	r.Region = must[*fabric.Region](w.t)(arena.Register(d.Domain, fabric.RegionConfig{Access: fabric.AccessAll}))
	r.remote = must[fabric.Remote](w.t)(r.RemoteOf(r.memory))
	w.say("open %s of %s in %s", w.add("region", r, r.Close), a, w.name(d))
	return r
}

// enable enables an endpoint with what it needs.
func (w *world) enable(e *anEndpoint) {
	b := fabric.Bindings{Send: w.queue(e.d).CompletionQueue}
	b.Receive = b.Send
	if w.number(3) == 0 {
		b.Receive = w.queue(e.d).CompletionQueue
	}
	if e.Info().Endpoint() != fabric.Connected {
		e.v = w.vector(e.d)
		b.Vector = e.v.AddressVector
	}
	events := w.events(e.d.f)
	b.Events = events.EventQueue
	if w.number(4) == 0 {
		if c, err := e.d.OpenCounter(); err == nil {
			w.say("open %s in %s", w.add("counter", c, c.Close), w.name(e.d))
			b.Counters = []fabric.CounterBinding{{Counter: c, Events: fabric.CountSends}}
		} else {
			require.ErrorIs(w.t, err, fabric.ErrNotSupported)
		}
	}
	w.say("enable %s", w.name(e))
	require.NoError(w.t, e.EnableWith(b))
	e.enabled = true
}

func (w *world) endpoint() *anEndpoint {
	if e, ok := one[*anEndpoint](w, nil); ok && w.number(2) > 0 {
		return e
	}
	d := w.domain()
	e := &anEndpoint{d: d}
	e.Endpoint = must[*fabric.Endpoint](w.t)(d.OpenEndpoint())
	w.say("open %s in %s", w.add("endpoint", e, e.Close), w.name(d))
	if w.number(8) > 0 {
		w.enable(e)
	}
	return e
}

// post gives an endpoint operations, which it may refuse.
func (w *world) post(e *anEndpoint) {
	if !e.enabled {
		w.enable(e)
	}
	var ops []fabric.Op
	for range 1 + w.number(6) {
		ops = append(ops, w.operation(e))
	}
	w.say("post %v to %s", kindsOf(ops), w.name(e))
	w.turn(e, ops...)
	for _, op := range ops {
		if op.Result == fabric.Posted {
			e.tokens = append(e.tokens, op.Token)
		}
	}
}

func kindsOf(ops []fabric.Op) (list []string) {
	for _, op := range ops {
		list = append(list, fmt.Sprintf("%v of %d to %d", op.Kind, len(op.Buf), op.Peer))
	}
	return list
}

func (w *world) operation(e *anEndpoint) fabric.Op {
	kinds := []fabric.OpKind{fabric.OpReceive, fabric.OpSend, fabric.OpSend, fabric.OpInject}
	caps := e.Info().Capabilities()
	if caps&fabric.TaggedMessages != 0 {
		kinds = append(kinds, fabric.OpTaggedReceive, fabric.OpTaggedSend, fabric.OpTaggedSend, fabric.OpTaggedInject)
	}
	if caps&fabric.RemoteMemory != 0 {
		kinds = append(kinds, fabric.OpRead, fabric.OpWrite, fabric.OpWriteInject)
	}
	op := fabric.Op{Kind: kinds[w.number(len(kinds))], Tag: uint64(w.number(3))}
	sizes := []int{0, 8, 60, 1000, 4097, 16384, 40000, 300_000}
	switch op.Kind {
	case fabric.OpInject, fabric.OpTaggedInject, fabric.OpWriteInject:
		sizes = sizes[:2]
	default:
		if e.Info().Endpoint() == fabric.Datagram {
			sizes = sizes[:4]
		}
	}
	op.Buf = make([]byte, min(sizes[w.number(len(sizes))], longestStrewn(e.Info())))
	op.Peer = fabric.AddressAny
	switch op.Kind {
	case fabric.OpReceive, fabric.OpTaggedReceive:
		return op
	case fabric.OpRead, fabric.OpWrite, fabric.OpWriteInject:
		// Its own region stands for one whose key is wrong at the peer, at times.
		op.Remote = w.region(e.d).remote
		op.Buf = op.Buf[:min(len(op.Buf), 64<<10)]
	}
	if e.v != nil {
		if len(e.v.peers) == 0 {
			return fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: op.Buf}
		}
		op.Peer = e.v.peers[w.number(len(e.v.peers))]
		e.v.unused = slices.DeleteFunc(e.v.unused, func(p fabric.Address) bool { return p == op.Peer })
	}
	return op
}

// turn takes a turn for which nobody cares, but for how errors are.
func (w *world) turn(e *anEndpoint, posts ...fabric.Op) {
	var completions [16]fabric.Completion
	n, err := e.Turn(posts, completions[:], 0)
	require.NoError(w.t, err)
	typed := func(err error) {
		if err != nil {
			var e *fabric.Error
			require.ErrorAs(w.t, err, &e)
		}
	}
	for _, op := range posts {
		typed(op.Err)
	}
	for _, c := range completions[:n] {
		typed(c.Err)
	}
}

// acquaint has two endpoints know each other, or one itself.
func (w *world) acquaint() {
	a, ok := one(w, func(e *anEndpoint) bool { return e.enabled && e.v != nil })
	if !ok {
		return
	}
	b, _ := one(w, func(e *anEndpoint) bool { return e.enabled && e.d.f.info == a.d.f.info })
	for _, way := range [][2]*anEndpoint{{a, b}, {b, a}} {
		v := way[0].v
		w.say("insert %s into %s", w.name(way[1]), w.name(v))
		peer, err := v.Insert(must[[]byte](w.t)(way[1].Name()))
		require.NoError(w.t, err)
		if !slices.Contains(v.peers, peer) || slices.Contains(v.unused, peer) {
			v.unused = append(v.unused, peer)
		}
		if !slices.Contains(v.peers, peer) {
			v.peers = append(v.peers, peer)
		}
	}
}

// remove removes a peer to which nothing is under way.
func (w *world) remove() {
	v, ok := one(w, func(v *aVector) bool { return len(v.unused) > 0 })
	if !ok {
		return
	}
	i := w.number(len(v.unused))
	peer := v.unused[i]
	w.say("remove %d from %s", peer, w.name(v))
	require.NoError(w.t, v.Remove(peer))
	v.unused = slices.Delete(v.unused, i, i+1)
	v.peers = slices.DeleteFunc(v.peers, func(p fabric.Address) bool { return p == peer && !slices.Contains(v.unused, peer) })
}

func (w *world) listen() {
	f := w.fabric()
	if f.info.Endpoint() != fabric.Connected {
		return
	}
	p := &aPassive{f: f}
	p.PassiveEndpoint = must[*fabric.PassiveEndpoint](w.t)(f.OpenPassiveEndpoint(f.info))
	w.say("open %s in %s", w.add("passive endpoint", p, p.Close), w.name(f))
	require.NoError(w.t, p.Listen(w.events(f).EventQueue))
}

// connect connects an endpoint, if it is not.
func (w *world) connect() {
	p, ok := one[*aPassive](w, nil)
	if !ok {
		w.listen()
		return
	}
	e := &anEndpoint{d: w.domain()}
	if e.d.f.info != p.f.info {
		return
	}
	e.Endpoint = must[*fabric.Endpoint](w.t)(e.d.OpenEndpoint())
	w.say("open %s in %s", w.add("endpoint", e, e.Close), w.name(e.d))
	w.enable(e)
	w.say("connect %s to %s", w.name(e), w.name(p))
	require.NoError(w.t, e.Connect(must[[]byte](w.t)(p.Name()), []byte("hello")))
}

// answer reads events, and decides about a request.
func (w *world) answer() {
	q, ok := one[*aEvents](w, nil)
	if !ok {
		return
	}
	for range 4 {
		event, ok, err := q.Read()
		var failed *fabric.ConnectionError
		if !errors.As(err, &failed) {
			require.NoError(w.t, err)
		}
		if !ok {
			break
		}
		w.say("event %T", event)
		if r, is := event.(*fabric.ConnectionRequest); is {
			q.requests = append(q.requests, r)
		}
	}
	if len(q.requests) == 0 || w.number(4) == 0 {
		return
	}
	r := q.requests[0]
	q.requests = q.requests[1:]
	closed := func(err error) bool {
		// The passive endpoint may be closed, and the request with it.
		return err != nil && (errors.Is(err, fabric.ErrInvalid) || w.gone(r.Passive()))
	}
	if w.number(4) == 0 {
		w.say("reject")
		if err := r.Reject(nil); !closed(err) {
			require.NoError(w.t, err)
		}
		return
	}
	d, ok := one(w, func(d *inDomain) bool { return d.f == q.f })
	if !ok {
		return
	}
	e := &anEndpoint{d: d}
	var err error
	if e.Endpoint, err = r.OpenEndpoint(d.Domain); closed(err) {
		return
	}
	require.NoError(w.t, err)
	w.say("open %s in %s for a request", w.add("endpoint", e, e.Close), w.name(d))
	w.enable(e)
	if w.number(4) > 0 {
		w.say("accept %s", w.name(e))
		if err := e.Accept(nil); !closed(err) {
			require.NoError(w.t, err)
		}
	}
}

// gone says whether a passive endpoint is closed.
func (w *world) gone(p *fabric.PassiveEndpoint) bool {
	for _, n := range w.nodes {
		if it, ok := n.it.(*aPassive); ok && it.PassiveEndpoint == p {
			return n.closed
		}
	}
	return true
}

// closeOne closes something, if it can be.
func (w *world) closeOne(n *node) bool {
	w.say("close %s", n.name)
	err := n.close()
	if err != nil {
		w.say("  %v", err)
		require.ErrorIs(w.t, err, fabric.ErrBusy)
		require.Regexp(w.t, whatLives, err.Error())
		return false
	}
	n.closed = true
	require.NoError(w.t, n.close(), "again")
	return true
}

// do carries a step out.
func (w *world) do() {
	switch w.number(12) {
	case 0, 1:
		w.endpoint()
	case 2, 3, 4:
		w.post(w.endpoint())
	case 5:
		w.acquaint()
	case 6:
		w.remove()
	case 7:
		w.connect()
	case 8:
		w.answer()
		w.answer()
	case 9:
		if open := w.open(); len(open) > 0 {
			w.closeOne(open[w.number(len(open))])
		}
	case 10:
		if e, ok := one(w, func(e *anEndpoint) bool { return len(e.tokens) > 0 }); ok {
			w.say("cancel at %s", w.name(e))
			if err := e.Cancel(e.tokens[w.number(len(e.tokens))]); err != nil {
				require.ErrorIs(w.t, err, fabric.ErrNotSupported)
			}
		}
	default:
		for _, n := range w.open() {
			if e, ok := n.it.(*anEndpoint); ok && e.enabled {
				w.turn(e)
			}
		}
	}
}

func (w *world) open() (list []*node) {
	for _, n := range w.nodes {
		if !n.closed {
			list = append(list, n)
		}
	}
	return list
}

// run carries a program out, and closes what is left of it.
func (w *world) run(p program, begin func() *anEndpoint) {
	w.nodes, w.random = nil, rand.New(rand.NewPCG(0, 0))
	if begin != nil {
		begin()
	}
	for _, step := range p {
		w.random = rand.New(rand.NewPCG(uint64(step), 0))
		w.do()
	}
	open := w.open()
	w.random.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	for len(open) > 0 {
		before := len(open)
		open = slices.DeleteFunc(open, w.closeOne)
		require.Less(w.t, len(open), before, "nothing can be closed any more")
	}
}
