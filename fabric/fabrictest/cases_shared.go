package fabrictest

import (
	"fmt"

	"github.com/weft-go/weft/fabric"
)

var sharedContextCases = []named{
	{"receive", sharedReceive},
	{"receive of connections", sharedReceiveOfConnections},
	{"send", sharedSend},
}

// Two endpoints receive into the buffers of one context.
func sharedReceive(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, bothMessages))
	sharing, err := s.info.WithContexts(1, fabric.SharedContext)
	noError(t, err)
	equal(t, fabric.SharedContext, sharing.ReceiveContexts())
	pool, own := s.queue(t, 64), s.queue(t, 64)
	_, err = s.domain.OpenSharedReceive(sharing, nil)
	errorIs(t, err, fabric.ErrInvalid)
	srx, err := s.domain.OpenSharedReceive(sharing, pool)
	t.need("shared receive contexts", err)
	closeAtEnd(t, srx)
	errorIs(t, srx.Enable(pool), fabric.ErrInvalid, "it is enabled already")
	errorIs(t, pool.Close(), fabric.ErrBusy)

	v := s.vector(t, fabric.AddressVectorConfig{})
	wrong, err := s.domain.OpenEndpointFor(sharing)
	noError(t, err)
	closeAtEnd(t, wrong)
	for _, b := range []fabric.Bindings{
		{Vector: v, Events: s.events, Send: own, Receive: own},
		{Vector: v, Events: s.events, Send: own, Receive: own, SharedReceive: srx},
	} {
		errorIs(t, wrong.EnableWith(b), fabric.ErrInvalid)
	}
	alone, err := s.domain.OpenEndpoint()
	noError(t, err)
	closeAtEnd(t, alone)
	errorIs(t, alone.EnableWith(fabric.Bindings{
		Vector: v, Events: s.events, Send: own, Receive: pool, SharedReceive: srx,
	}), fabric.ErrInvalid)

	var ends [2]*station
	for i := range ends {
		ends[i] = s.open(t, sharing, fabric.Bindings{Vector: v, Receive: pool, SharedReceive: srx})
	}
	errorIs(t, srx.Close(), fabric.ErrBusy)
	pooled, from := newStation(t, s, srx, pool), s.open(t, s.info, fabric.Bindings{Vector: v})
	pooled.others, from.others = []*station{from}, []*station{pooled}
	errorIs(t, ends[0].post(t, fabric.Op{Kind: fabric.OpReceive, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
	errorIs(t, pooled.post(t, fabric.Op{Kind: fabric.OpSend, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
	for i, end := range ends {
		pooled.hearsFrom(t, from, insert(t, v, end.e), fmt.Sprintf("to %d", i))
	}
	// One is in flight when everything is closed.
	op := pooled.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
	errorIs(t, srx.Cancel(op.Token), fabric.ErrNotSupported)
}

// hearsFrom receives one message that another station sends.
func (s *station) hearsFrom(t *trial, from *station, to fabric.Address, text string) {
	t.Helper()
	got := make([]byte, 16)
	s.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: 9})
	from.must(t, fabric.Op{Kind: fabric.OpSend, Peer: to, Buf: []byte(text)})
	c := s.done(t)
	equal(t, 9, c.Context)
	equal(t, text, string(got[:c.Len]))
	from.done(t)
}

// Accepted connections receive into the buffers of one context.
func sharedReceiveOfConnections(t *trial) {
	x := openOffice(t)
	sharing, err := x.info.WithContexts(1, fabric.SharedContext)
	noError(t, err)
	pool := x.queue(t, 64)
	srx, err := x.domain.OpenSharedReceive(sharing, pool)
	t.need("shared receive contexts of connections", err)
	closeAtEnd(t, srx)
	p, err := x.fabric.OpenPassiveEndpoint(sharing)
	noError(t, err)
	closeAtEnd(t, p)
	noError(t, p.Listen(x.events))
	address, err := p.Name()
	noError(t, err)
	pooled := newStation(t, x.site, srx, pool)
	var callers, answers [3]*station
	for i := range callers {
		callers[i] = x.caller(t)
		callers[i].others = []*station{pooled}
		noError(t, callers[i].e.Connect(address, nil))
		r := x.request(t)
		equal(t, fabric.SharedContext, r.Info().ReceiveContexts())
		e, err := r.OpenEndpoint(x.domain)
		noError(t, err)
		closeAtEnd(t, e)
		noError(t, e.EnableWith(fabric.Bindings{Send: pool, Receive: pool, Events: x.events, SharedReceive: srx}))
		noError(t, e.Accept(nil))
		answers[i] = newStation(t, x.site, e, pool)
		answers[i].e = e
		x.connected(t, callers[i])
		x.connected(t, answers[i])
	}
	errorIs(t, answers[0].post(t, fabric.Op{Kind: fabric.OpReceive, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
	for i, a := range callers {
		pooled.others = []*station{a}
		pooled.hearsFrom(t, a, 0, fmt.Sprintf("caller %d", i))
	}
	pooled.must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
}

// Two endpoints send through one context.
func sharedSend(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, bothMessages))
	stx, err := s.domain.OpenSharedSend(s.info)
	t.need("shared send contexts", err)
	closeAtEnd(t, stx)
	sharing, err := s.info.WithContexts(fabric.SharedContext, 1)
	noError(t, err)
	to := s.open(t, s.info, fabric.Bindings{})
	for i := range 2 {
		from := s.open(t, sharing, fabric.Bindings{SharedSend: stx})
		acquaint(t, from, to)
		to.hearsFrom(t, from, from.peer, fmt.Sprintf("from %d", i))
	}
	errorIs(t, stx.Close(), fabric.ErrBusy)
}
