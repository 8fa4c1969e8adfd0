package fabrictest

import "github.com/weft-go/weft/fabric"

var datagramCases = []named{
	{"messages", datagrams},
	{"set name", setName},
}

// Datagrams arrive where somebody waits for them.
func datagrams(t *trial) {
	s := openSite(t, t.hints(fabric.Datagram, fabric.Messages|fabric.SourceAddress))
	a, b := s.pair(t, nil, nil)
	for _, size := range []int{0, 1, 100, int(min(1400, s.info.MaxMessage()))} {
		sent, got := counting(size), make([]byte, size+1)
		// Received before it is sent: a datagram that nobody waits for may be
		// dropped.
		b.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got})
		a.must(t, fabric.Op{Kind: fabric.OpSend, Peer: a.peer, Buf: sent})
		a.done(t)
		c := b.done(t)
		equal(t, size, c.Len)
		equal(t, sent, got[:size])
		if c.Source != fabric.AddressAny {
			equal(t, b.peer, c.Source)
		}
	}
	errorIs(t, a.e.Connect(make([]byte, 16), nil), fabric.ErrInvalid)
	errorIs(t, a.e.Shutdown(), fabric.ErrInvalid)
	idle(t, a, b)
}

// A datagram endpoint can be given its address, and works without an event
// queue.
func setName(t *trial) {
	s := openSite(t, t.hints(fabric.Datagram, fabric.Messages|fabric.SourceAddress))
	other := s.open(t, s.info, fabric.Bindings{})
	want, err := other.e.Name()
	noError(t, err)
	if s.info.AddressFormat() == fabric.FormatIPv4 {
		want[2], want[3] = 0, 0 // any port
	}
	e, err := s.domain.OpenEndpointFor(s.info)
	noError(t, err)
	// Before its queue and vector.
	defer func() { noError(t, e.Close()) }()
	errorIs(t, e.SetName([]byte{2, 0, 1}), fabric.ErrInvalid)
	t.need("fi_setname", e.SetName(want))
	q, v := s.queue(t, 64), s.vector(t, fabric.AddressVectorConfig{})
	noError(t, e.EnableWith(fabric.Bindings{Vector: v, Send: q, Receive: q}))
	name, err := e.Name()
	noError(t, err)
	equal(t, len(want), len(name))
	if s.info.AddressFormat() == fabric.FormatIPv4 {
		equal(t, want[4:8], name[4:8])
		isTrue(t, name[2] != 0 || name[3] != 0, "a port was chosen")
	}
}
