package fabric_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// closingInfos are the endpoints of a provider, one info a type.
func closingInfos(t *testing.T, provider string) (infos []*fabric.Info) {
	t.Helper()
	for _, hints := range []fabric.Hints{
		{Endpoint: fabric.ReliableDatagram, Capabilities: everything, OrderedSends: true},
		{Endpoint: fabric.Connected, Capabilities: fabric.Messages | fabric.RemoteMemory},
		{Endpoint: fabric.Datagram, Capabilities: fabric.Messages},
		{Endpoint: fabric.ReliableDatagram, Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.NamedReceiveContexts},
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

// vectorFor is one that is open, or a new one. A vector of efa is for one endpoint, ever:
// others are refused.
func (w *world) vectorFor(e *anEndpoint) *aVector {
	d := e.d
	alone := d.f.info.Provider() == "efa"
	if v, ok := one(w, func(v *aVector) bool { return v.d == d }); ok && w.number(3) > 0 && !alone {
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
	arena := must[*fabric.Arena](w.t)(fabric.NewArena(300_000))
	a := w.add("arena", arena, arena.Close)
	r := &aRegion{d: d, memory: arena.Bytes()}
	r.Region = must[*fabric.Region](w.t)(arena.Register(d.Domain, fabric.RegionConfig{Access: fabric.AccessAll}))
	r.remote = must[fabric.Remote](w.t)(r.RemoteOf(r.memory))
	w.say("open %s of %s in %s", w.add("region", r, r.Close), a, w.name(d))
	return r
}

func (w *world) endpoint() *anEndpoint {
	if e, ok := one[*anEndpoint](w, nil); ok && w.number(2) > 0 {
		return e
	}
	d := w.domain()
	e := w.unborn(d)
	if w.number(8) > 0 {
		w.enable(e)
	}
	return e
}

// unborn opens an endpoint, which shares its receives at times.
func (w *world) unborn(d *inDomain) *anEndpoint {
	e := &anEndpoint{d: d}
	if w.number(4) == 0 {
		e.shares, _ = w.sharedReceive(d)
	}
	if e.shares != nil {
		e.Endpoint = must[*fabric.Endpoint](w.t)(d.OpenEndpointFor(e.shares.sharing))
		w.say("open %s in %s for %s", w.add("endpoint", e, e.Close), w.name(d), w.name(e.shares))
	} else {
		e.Endpoint = must[*fabric.Endpoint](w.t)(d.OpenEndpoint())
		w.say("open %s in %s", w.add("endpoint", e, e.Close), w.name(d))
	}
	return e
}

// enable enables an endpoint with what it needs.
func (w *world) enable(e *anEndpoint) {
	b := fabric.Bindings{Send: w.queue(e.d).CompletionQueue}
	b.Receive = b.Send
	if w.number(3) == 0 {
		b.Receive = w.queue(e.d).CompletionQueue
	}
	if e.shares != nil {
		if w.closed(e.shares) {
			// It never will be.
			return
		}
		b.SharedReceive, b.Receive = e.shares.SharedReceive, e.shares.q.CompletionQueue
	}
	if e.Info().Endpoint() != fabric.Connected {
		e.v = w.vectorFor(e)
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
