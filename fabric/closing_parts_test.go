package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/testenv"
)

// base opens what every endpoint needs.
func (e *estate) base(info *fabric.Info) *corner {
	t := e.t
	c := &corner{}
	var err error
	c.fabric, err = info.OpenFabric()
	require.NoError(t, err)
	e.add("fabric", c.fabric)
	c.domain, err = c.fabric.OpenDomain(info)
	require.NoError(t, err)
	e.add("domain", c.domain)
	c.events, err = c.fabric.OpenEventQueue()
	require.NoError(t, err)
	e.add("event queue", c.events, func() { _, _, _ = c.events.Read() })
	return c
}

func (e *estate) queue(c *corner) *fabric.CompletionQueue {
	q, err := c.domain.OpenCompletionQueue(64)
	require.NoError(e.t, err)
	e.add("completion queue", q)
	return q
}

func (e *estate) vector(c *corner, config fabric.AddressVectorConfig) *fabric.AddressVector {
	v, err := c.domain.OpenAddressVectorConfig(config)
	require.NoError(e.t, err)
	e.add("address vector", v)
	return v
}

// takes offers operations once, whatever becomes of them.
func (e *estate) takes(x turner, posts ...fabric.Op) {
	var completions [16]fabric.Completion
	_, err := x.Turn(posts, completions[:], 0)
	require.NoError(e.t, err)
}

// endpoint enables one and uses it from then on.
func (e *estate) endpoint(x *fabric.Endpoint, b fabric.Bindings) {
	e.add("endpoint", x, func() { e.takes(x) })
	require.NoError(e.t, x.EnableWith(b))
}

func receiveAnything(size int) fabric.Op {
	return fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, size)}
}

// A passive endpoint and two that connect, closed at every stage of it.
func TestCloseOrdersOfConnections(t *testing.T) {
	for _, p := range []string{"sockets", "tcp", "net"} {
		t.Run(p, func(t *testing.T) {
			infos, err := fabric.Discover(fabric.Hints{
				Provider: p, Endpoint: fabric.Connected, Capabilities: fabric.Messages | fabric.RemoteMemory,
				MemoryMode: everyMemoryMode, Source: "127.0.0.1",
			})
			testenv.Need(t, p, err)
			inOrders(t, 40, func(e *estate) { connecting(e, infos[0]) })
		})
	}
}

func connecting(e *estate, info *fabric.Info) {
	t := e.t
	c := e.base(info)
	x := &exchangeOffice{info: info, fabric: c.fabric, domain: c.domain, events: c.events}
	p, err := c.fabric.OpenPassiveEndpoint(info)
	require.NoError(t, err)
	e.add("passive endpoint", p)
	require.NoError(t, p.Listen(c.events))
	address, err := p.Name()
	require.NoError(t, err)
	for i := range 2 {
		q := e.queue(c)
		a, err := c.domain.OpenEndpoint()
		require.NoError(t, err)
		e.endpoint(a, fabric.Bindings{Send: q, Receive: q, Events: c.events})
		e.takes(a, receiveAnything(64), receiveAnything(1<<20))
		stage := e.random.IntN(7)
		if stage == 0 {
			continue
		}
		require.NoError(t, a.Connect(address, []byte{byte(i)}))
		if stage == 1 {
			continue
		}
		r := x.request(t)
		for r.Data[0] != byte(i) {
			// That of the other, which nobody answers.
			r = x.request(t)
		}
		if stage == 2 {
			continue
		}
		b, err := r.OpenEndpoint(c.domain)
		require.NoError(t, err)
		if stage == 3 {
			e.add("endpoint", b)
			continue
		}
		q = e.queue(c)
		e.endpoint(b, fabric.Bindings{Send: q, Receive: q, Events: c.events})
		require.NoError(t, b.Accept(nil))
		if stage == 4 {
			continue
		}
		x.connected(t, &party{e: a})
		x.connected(t, &party{e: b})
		for _, end := range []*fabric.Endpoint{a, b} {
			e.takes(end, receiveAnything(8), fabric.Op{Kind: fabric.OpSend, Buf: make([]byte, 1<<20)},
				fabric.Op{Kind: fabric.OpSend, Buf: make([]byte, 8)}, fabric.Op{Kind: fabric.OpSend, Buf: make([]byte, 64<<10)})
		}
		if stage == 5 {
			require.NoError(t, b.Shutdown())
		}
	}
	for range e.random.IntN(4) {
		e.useAll()
	}
}

// A scalable endpoint and its contexts.
func TestCloseOrdersOfContexts(t *testing.T) {
	info := datagramsFor(t, "sockets", fabric.Messages|fabric.TaggedMessages|fabric.NamedReceiveContexts)
	const bits = 1
	several, err := info.WithContexts(2, 2)
	require.NoError(t, err)
	inOrders(t, 30, func(e *estate) {
		c := e.base(info)
		v := e.vector(c, fabric.AddressVectorConfig{ReceiveBits: bits})
		s, err := c.domain.OpenScalableEndpoint(several)
		require.NoError(t, err)
		e.add("scalable endpoint", s)
		require.NoError(t, s.Enable(v, c.events))
		self := insert(t, v, s)
		for i := range 2 {
			x, err := s.OpenReceive(i)
			require.NoError(t, err)
			e.add("receive context", x, func() { e.takes(x) })
			require.NoError(t, x.Enable(e.queue(c)))
			e.takes(x, receiveAnything(8), fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Buf: make([]byte, 8)})
		}
		for i := range 2 {
			x, err := s.OpenSend(i)
			require.NoError(t, err)
			e.add("send context", x, func() { e.takes(x) })
			if e.random.IntN(4) == 0 {
				// It can be closed before it is enabled.
				e.things[len(e.things)-1].use = nil
				continue
			}
			counter, err := c.domain.OpenCounter()
			require.NoError(t, err)
			e.add("counter", counter)
			require.NoError(t, x.Enable(e.queue(c), fabric.CounterBinding{Counter: counter, Events: fabric.CountSends}))
			e.takes(x, fabric.Op{Kind: fabric.OpSend, Peer: self.Context(i, bits), Buf: make([]byte, 256<<10)},
				fabric.Op{Kind: fabric.OpTaggedSend, Peer: self.Context(1-i, bits), Tag: 1, Buf: make([]byte, 16)})
		}
		for range e.random.IntN(4) {
			e.useAll()
		}
	})
}

// Endpoints that share a receive context, and one that sends to them.
func TestCloseOrdersOfSharedContexts(t *testing.T) {
	info := datagramsFor(t, "sockets", fabric.Messages|fabric.TaggedMessages)
	sharing, err := info.WithContexts(1, fabric.SharedContext)
	require.NoError(t, err)
	inOrders(t, 30, func(e *estate) {
		c := e.base(info)
		v, pool := e.vector(c, fabric.AddressVectorConfig{}), e.queue(c)
		srx, err := c.domain.OpenSharedReceive(sharing, pool)
		require.NoError(t, err)
		e.add("shared receive context", srx, func() { e.takes(srx) })
		e.takes(srx, receiveAnything(8), receiveAnything(1<<20),
			fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Buf: make([]byte, 8)})
		var ends []*fabric.Endpoint
		for range 2 {
			end, err := c.domain.OpenEndpointFor(sharing)
			require.NoError(t, err)
			e.endpoint(end, fabric.Bindings{Vector: v, Events: c.events, Send: e.queue(c), Receive: pool, SharedReceive: srx})
			ends = append(ends, end)
		}
		from, err := c.domain.OpenEndpoint()
		require.NoError(t, err)
		q := e.queue(c)
		e.endpoint(from, fabric.Bindings{Vector: v, Events: c.events, Send: q, Receive: q})
		for _, end := range ends {
			to := insert(t, v, end)
			e.takes(from, fabric.Op{Kind: fabric.OpSend, Peer: to, Buf: make([]byte, 256<<10)},
				fabric.Op{Kind: fabric.OpTaggedSend, Peer: to, Tag: 1, Buf: make([]byte, 8)})
		}
		for range e.random.IntN(4) {
			e.useAll()
		}
	})
}

// Deferred operations whose time comes, has come, or never comes.
func TestCloseOrdersOfDeferred(t *testing.T) {
	hints := deferringHints()
	info := datagramsFor(t, "sockets", hints.Capabilities)
	inOrders(t, 30, func(e *estate) {
		c := e.base(info)
		v := e.vector(c, fabric.AddressVectorConfig{})
		var ends [2]*fabric.Endpoint
		for i := range ends {
			var err error
			ends[i], err = c.domain.OpenEndpoint()
			require.NoError(t, err)
			q := e.queue(c)
			e.endpoint(ends[i], fabric.Bindings{Vector: v, Events: c.events, Send: q, Receive: q})
		}
		peer := insert(t, v, ends[1])
		var counters [3]*fabric.Counter
		for i := range counters {
			var err error
			counters[i], err = c.domain.OpenCounter()
			require.NoError(t, err)
			e.add("counter", counters[i])
		}
		when := fabric.Trigger{Counter: counters[0], Threshold: 2}
		for _, op := range []fabric.Op{
			{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 1, Buf: make([]byte, 256<<10)},
			{Kind: fabric.OpSend, Peer: peer, Buf: make([]byte, 8)},
			{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 99, Buf: make([]byte, 8)},
		} {
			f, err := ends[0].Defer(op, when, nil)
			require.NoError(t, err)
			e.add("deferred operation", f)
		}
		f, err := ends[0].Defer(fabric.Op{Kind: fabric.OpSend, Peer: peer, Buf: make([]byte, 8)}, when, counters[1])
		require.NoError(t, err)
		e.add("deferred operation", f)
		f, err = counters[2].DeferAdd(1, when)
		require.NoError(t, err)
		e.add("deferred operation", f)
		trigger := fabric.Op{Kind: fabric.OpTaggedSend, Peer: peer, Tag: 2, Buf: make([]byte, 8)}
		require.NoError(t, ends[0].PostWhen(&trigger, when))
		for range e.random.IntN(4) {
			require.NoError(t, counters[0].Add(1))
			e.useAll()
		}
	})
}

// Members of a group that is being joined, or that works on something.
func TestCloseOrdersOfGroups(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "tcp;ofi_rxm", Endpoint: fabric.ReliableDatagram, Source: "127.0.0.1", OneThread: true,
		Capabilities: fabric.Messages | fabric.TaggedMessages | fabric.Collectives, MemoryMode: everyMemoryMode,
	})
	testenv.Need(t, "tcp with collectives", err)
	inOrders(t, 30, func(e *estate) {
		c := e.base(infos[0])
		var members [3]*member
		var names [][]byte
		for i := range members {
			m := &member{domain: c.domain, v: e.vector(c, fabric.AddressVectorConfig{}), q: e.queue(c)}
			members[i] = m
			var err error
			m.events, err = c.fabric.OpenEventQueue()
			require.NoError(t, err)
			e.add("event queue", m.events, func() { _, _, _ = m.events.Read() })
			m.e, err = c.domain.OpenEndpoint()
			require.NoError(t, err)
			e.endpoint(m.e, fabric.Bindings{Vector: m.v, Send: m.q, Receive: m.q, Events: m.events})
			name, err := m.e.Name()
			require.NoError(t, err)
			names = append(names, name)
		}
		for _, m := range members {
			results, err := m.v.InsertAll(names)
			require.NoError(t, err)
			var addresses []fabric.Address
			for _, r := range results {
				require.NoError(t, r.Err)
				addresses = append(addresses, r.Address)
			}
			m.set, err = m.v.OpenSet(fabric.AddressSetConfig{Members: addresses})
			require.NoError(t, err)
			e.add("address set", m.set)
		}
		joining := members[:e.random.IntN(len(members)+1)]
		for _, m := range joining {
			m.group, err = m.e.JoinCollective(m.set, 0)
			require.NoError(t, err)
			e.add("group", m.group)
		}
		if len(joining) == len(members) && e.random.IntN(3) > 0 {
			join(t, members[:])
			for _, m := range members[:1+e.random.IntN(len(members))] {
				_, err := m.group.Barrier(1, 0)
				require.NoError(t, err)
			}
		}
		for range e.random.IntN(4) {
			e.useAll()
		}
	})
}

// A datagram endpoint in a multicast group.
func TestCloseOrdersOfMulticast(t *testing.T) {
	infos, err := fabric.Discover(fabric.Hints{
		Provider: "udp", Endpoint: fabric.Datagram, Capabilities: fabric.Messages | fabric.Multicast,
		Source: "127.0.0.1", MemoryMode: everyMemoryMode,
	})
	testenv.Need(t, "multicast", err)
	inOrders(t, 30, func(e *estate) {
		c := e.base(infos[0])
		v, q := e.vector(c, fabric.AddressVectorConfig{}), e.queue(c)
		x, err := c.domain.OpenEndpoint()
		require.NoError(t, err)
		e.endpoint(x, fabric.Bindings{Vector: v, Events: c.events, Send: q, Receive: q})
		g, err := x.JoinMulticast(groupAddress(t, x), 0)
		require.NoError(t, err)
		e.add("multicast group", g)
		self := insert(t, v, x)
		e.takes(x, receiveAnything(8), receiveAnything(64), fabric.Op{Kind: fabric.OpSend, Peer: self, Buf: make([]byte, 8)})
	})
}
