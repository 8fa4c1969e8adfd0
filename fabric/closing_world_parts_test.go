package fabric_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// What endpoints share, and what stands for a part of one.
type (
	aShared struct {
		*fabric.SharedReceive
		d       *inDomain
		q       *aQueue
		sharing *fabric.Info
	}
	aScalable struct {
		*fabric.ScalableEndpoint
		d    *inDomain
		self fabric.Address
		next [2]int // how many contexts were opened, for sending and receiving
	}
	aContext struct {
		*fabric.Context
		of       *aScalable
		index    int
		receives bool
		enabled  bool
	}
	anAlias struct {
		*fabric.Alias
		of *anEndpoint
	}
)

// receiveBits are those of scalable endpoints, which have as many contexts each way as
// fit.
const receiveBits = 1

// sharedReceive is a context that endpoints share, if the provider has such. Each has a
// queue of its own.
func (w *world) sharedReceive(d *inDomain) (*aShared, bool) {
	if d.f.info.Limits().SharedReceives == 0 {
		return nil, false
	}
	if s, ok := one(w, func(s *aShared) bool { return s.d == d }); ok && w.number(4) > 0 {
		return s, true
	}
	s := &aShared{d: d, q: &aQueue{d: d}}
	s.sharing = must[*fabric.Info](w.t)(d.f.info.WithContexts(1, fabric.SharedContext))
	s.q.CompletionQueue = must[*fabric.CompletionQueue](w.t)(d.OpenCompletionQueue(64))
	w.say("open %s in %s", w.add("queue", s.q, s.q.Close), w.name(d))
	s.SharedReceive = must[*fabric.SharedReceive](w.t)(d.OpenSharedReceive(s.sharing, s.q.CompletionQueue))
	w.say("open %s in %s", w.add("shared receive context", s, s.Close), w.name(d))
	return s, true
}

// fill posts receives to a shared context.
func (w *world) fill() {
	s, ok := one[*aShared](w, nil)
	if !ok {
		return
	}
	ops := []fabric.Op{receiveAnything(8), receiveAnything(1000), receiveAnything(300_000)}[:1+w.number(3)]
	if s.d.f.info.Capabilities()&fabric.TaggedMessages != 0 {
		ops = append(ops, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: uint64(w.number(3)), Buf: make([]byte, 60)})
	}
	w.say("post %v to %s", kindsOf(ops), w.name(s))
	w.turn(s, ops...)
}

// alias opens one of an endpoint, or posts to it.
func (w *world) alias() {
	if a, ok := one[*anAlias](w, nil); ok && w.number(3) > 0 {
		ops := []fabric.Op{w.operation(a.of), w.operation(a.of)}
		w.say("post %v to %s", kindsOf(ops), w.name(a))
		w.turn(a, ops...)
		return
	}
	e, ok := one(w, func(e *anEndpoint) bool { return e.enabled })
	if !ok {
		return
	}
	opened, err := e.OpenAlias(fabric.Sending, fabric.DeliveryComplete)
	if err != nil {
		require.ErrorIs(w.t, err, fabric.ErrNotSupported)
		return
	}
	a := &anAlias{Alias: opened, of: e}
	w.say("open %s of %s", w.add("alias", a, a.Close), w.name(e))
}

// scale opens a scalable endpoint, or a context of one.
func (w *world) scale() {
	s, ok := one[*aScalable](w, nil)
	if !ok || w.number(4) == 0 {
		d, ok := one(w, func(d *inDomain) bool { return d.f.info.Capabilities()&fabric.NamedReceiveContexts != 0 })
		if !ok {
			return
		}
		info := must[*fabric.Info](w.t)(d.f.info.WithContexts(1<<receiveBits, 1<<receiveBits))
		s = &aScalable{d: d}
		s.ScalableEndpoint = must[*fabric.ScalableEndpoint](w.t)(d.OpenScalableEndpoint(info))
		w.say("open %s in %s", w.add("scalable endpoint", s, s.Close), w.name(d))
		v := must[*fabric.AddressVector](w.t)(d.OpenAddressVectorConfig(fabric.AddressVectorConfig{ReceiveBits: receiveBits}))
		w.say("open %s in %s", w.add("vector of contexts", v, v.Close), w.name(d))
		require.NoError(w.t, s.Enable(v, w.events(d.f).EventQueue))
		s.self = must[fabric.Address](w.t)(v.Insert(must[[]byte](w.t)(s.Name())))
	}
	c := &aContext{of: s, receives: w.number(2) == 0}
	way, open, kind := 0, s.OpenSend, "send context"
	if c.receives {
		way, open, kind = 1, s.OpenReceive, "receive context"
	}
	if s.next[way] == 1<<receiveBits {
		return
	}
	c.index = s.next[way]
	s.next[way]++
	c.Context = must[*fabric.Context](w.t)(open(c.index))
	w.say("open %s of %s", w.add(kind, c, c.Close), w.name(s))
}

// useContext posts to a context.
func (w *world) useContext() {
	c, ok := one[*aContext](w, nil)
	if !ok {
		return
	}
	if !c.enabled {
		w.say("enable %s", w.name(c))
		require.NoError(w.t, c.Enable(w.queue(c.of.d).CompletionQueue))
		c.enabled = true
	}
	if c.receives {
		w.turn(c, receiveAnything(8), fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Buf: make([]byte, 8)})
		return
	}
	to, ok := one(w, func(to *aContext) bool { return to.of == c.of && to.receives && to.enabled })
	if !ok {
		return
	}
	w.say("send from %s to %s", w.name(c), w.name(to))
	peer := c.of.self.Context(to.index, receiveBits)
	w.sendThroughContext(c, fabric.Op{Kind: fabric.OpSend, Peer: peer, Buf: make([]byte, 256<<10)},
		fabric.Op{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1, Buf: make([]byte, 16)})
}

// sendThroughContext sends, and waits until the sends have ended: a context of sockets
// that is closed amid messages ends the process (docs/PROVIDERS.md, section sockets). It
// is the one place that has to change when it does not any more.
func (w *world) sendThroughContext(c *aContext, ops ...fabric.Op) {
	const mine = 4711
	for i := range ops {
		ops[i].Context = mine
	}
	under := 0
	for _, done := range w.turn(c, ops...) {
		if done.Context == mine {
			under--
		}
	}
	for _, op := range ops {
		if op.Result == fabric.Posted {
			under++
		}
	}
	for end := time.Now().Add(30 * time.Second); under > 0; {
		require.True(w.t, time.Now().Before(end), "%d sends do not end", under)
		for _, n := range w.open() {
			if x, ok := n.it.(*aContext); ok && x.enabled {
				for _, done := range w.turn(x) {
					if done.Context == mine {
						under--
					}
				}
			}
		}
	}
}

// takesTurns is what a thing that takes turns is, or nil.
func takesTurns(it any) turner {
	switch x := it.(type) {
	case *anEndpoint:
		if x.enabled {
			return x
		}
	case *aContext:
		if x.enabled {
			return x
		}
	case *anAlias:
		return x
	case *aShared:
		return x
	}
	return nil
}
