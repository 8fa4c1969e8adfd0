package fabrictest

import "github.com/weft-go/weft/fabric"

var datagramCases = []named{
	{"messages", datagrams},
	{"too long", longDatagrams},
	{"set name", setName},
}

// openDatagrams opens what has datagrams. Providers differ in what they ask for, and
// in what their completions say.
func openDatagrams(t *trial) *site {
	t.Helper()
	h := t.hints(fabric.Datagram, fabric.Messages)
	// efa asks for the first, and drops what there is no receive for.
	h.Mode, h.ResourceManagement = fabric.MessagePrefix, fabric.ResourcesDisabled
	return openSite(t, h)
}

// datagram opens an endpoint for datagrams.
func (s *site) datagram(t *trial) *station {
	t.Helper()
	// Without tags, efa has no others.
	q := s.queueOf(t, fabric.CompletionQueueConfig{Size: 64, Format: fabric.CompletionData})
	return s.open(t, s.info, fabric.Bindings{Send: q})
}

// prefixed is a message behind as much room as the provider asks for.
func (s *site) prefixed(message []byte) []byte {
	room := 0
	if s.info.Mode()&fabric.MessagePrefix != 0 {
		room = int(s.info.PrefixSize())
	}
	return append(make([]byte, room, room+len(message)), message...)
}

// Datagrams arrive where somebody waits for them.
func datagrams(t *trial) {
	s := openDatagrams(t)
	a, b := s.datagram(t), s.datagram(t)
	acquaint(t, a, b)
	prefix := len(s.prefixed(nil))
	longest := int(min(1400, s.info.MaxMessage()-uint64(prefix)))
	for _, size := range []int{0, 1, 100, longest} {
		want := counting(size)
		got := s.prefixed(make([]byte, size+1))
		// Received before it is sent: a datagram that nobody waits for may be
		// dropped.
		b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 1})
		a.must(t, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: s.prefixed(want), Context: 2})
		equal(t, 2, a.done(t).Context)
		c := b.done(t)
		equal(t, 1, c.Context)
		equal(t, prefix+size, c.Len)
		equal(t, want, got[prefix:][:size])
		if c.Source != fabric.AddressAny {
			equal(t, b.peer, c.Source)
		}
	}
	errorIs(t, a.e.Connect(make([]byte, 16), nil), fabric.ErrInvalid)
	errorIs(t, a.e.Shutdown(), fabric.ErrInvalid)
	idle(t, a, b)
}

// What no datagram can hold fails by itself, and the next one arrives.
func longDatagrams(t *trial) {
	s := openDatagrams(t)
	const tooLong = 1 << 20
	if s.info.MaxMessage() > tooLong {
		t.need("datagrams with an end", fabric.ErrNotSupported)
	}
	a, b := s.datagram(t), s.datagram(t)
	acquaint(t, a, b)
	op := a.post(t, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: make([]byte, tooLong)})
	if op.Err == nil {
		isTrue(t, a.await(t).Err != nil, "it was sent")
	}
	got := s.prefixed(make([]byte, 9))
	b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 1})
	a.must(t, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: s.prefixed([]byte("the next")), Context: 2})
	equal(t, 2, a.done(t).Context)
	equal(t, len(got)-1, b.done(t).Len)
	idle(t, a, b)
}

// A datagram endpoint can be given its address, and works without an event
// queue.
func setName(t *trial) {
	s := openDatagrams(t)
	other := s.datagram(t)
	want, err := other.e.Name()
	noError(t, err)
	if s.info.AddressFormat() == fabric.FormatIPv4 {
		want[2], want[3] = 0, 0 // any port
	}
	e, err := s.domain.OpenEndpointFor(s.info)
	noError(t, err)
	// Before its queue and vector.
	defer func() { noError(t, e.Close()) }()
	t.need("fi_setname", e.SetName(want))
	errorIs(t, e.SetName([]byte{2, 0, 1}), fabric.ErrInvalid)
	q, v := other.q, s.vector(t, fabric.AddressVectorConfig{})
	noError(t, e.EnableWith(fabric.Bindings{Vector: v, Send: q, Receive: q}))
	name, err := e.Name()
	noError(t, err)
	equal(t, len(want), len(name))
	if s.info.AddressFormat() == fabric.FormatIPv4 {
		equal(t, want[4:8], name[4:8])
		isTrue(t, name[2] != 0 || name[3] != 0, "a port was chosen")
	}
}
