package fabrictest

import "github.com/weft-go/weft/fabric"

var domainCases = []named{
	{"many domains", manyDomains},
	{"two at once", twoDomains},
}

// A fabric has many domains at once, and each works.
func manyDomains(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, fabric.TaggedMessages))
	for i := range 8 {
		d, err := s.fabric.OpenDomain(s.info)
		noError(t, err)
		closeAtEnd(t, d)
		x := &site{info: s.info, fabric: s.fabric, domain: d, events: s.events}
		closeKeptAtEnd(t, x)
		a, b := x.pair(t, nil, nil)
		a.say(t, uint64(i), "here")
		b.hears(t, fabric.Op{Tag: uint64(i)}, "here")
	}
}

// Endpoints of two domains reach each other.
func twoDomains(t *trial) {
	h := t.hints(fabric.ReliableDatagram, fabric.TaggedMessages)
	s, other := openSite(t, h), openSite(t, h)
	a, b := s.open(t, s.info, fabric.Bindings{}), other.open(t, other.info, fabric.Bindings{})
	acquaint(t, a, b)
	for i, pair := range [][2]*station{{a, b}, {b, a}} {
		pair[0].say(t, uint64(i), "across")
		pair[1].hears(t, fabric.Op{Tag: uint64(i)}, "across")
	}
	idle(t, a, b)
}
