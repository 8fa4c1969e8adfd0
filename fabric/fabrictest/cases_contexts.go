package fabrictest

import (
	"fmt"

	"github.com/weft-go/weft/fabric"
)

var scalableCases = []named{
	{"contexts", scalableEndpoint},
	{"alias", alias},
	{"operation flags", operationFlags},
}

// A scalable endpoint talks to itself: each send context to another receive
// context.
func scalableEndpoint(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, bothMessages|fabric.NamedReceiveContexts))
	const contexts, bits = 4, 2
	if most := s.info.Limits(); most.EndpointSendContexts < contexts || most.EndpointReceiveContexts < contexts {
		t.need("scalable endpoints", fmt.Errorf("it has %d contexts", most.EndpointReceiveContexts))
	}
	several, err := s.info.WithContexts(contexts, contexts)
	noError(t, err)
	v := s.vector(t, fabric.AddressVectorConfig{ReceiveBits: bits})
	e, err := s.domain.OpenScalableEndpoint(several)
	noError(t, err)
	closeAtEnd(t, e)
	_, err = e.OpenSend(0)
	errorIs(t, err, fabric.ErrInvalid, "before Enable")
	_, err = e.Name()
	errorIs(t, err, fabric.ErrInvalid, "before Enable")
	errorIs(t, e.Enable(nil, nil), fabric.ErrInvalid)
	noError(t, e.Enable(v, s.events))
	errorIs(t, e.Enable(v, s.events), fabric.ErrInvalid)

	var sends, receives [contexts]*station
	var first *fabric.Context // that receives
	ready := func(x *fabric.Context, err error) *station {
		noError(t, err)
		// Where the case ends before its queue is there.
		closeAtEnd(t, x)
		_, err = x.Turn(nil, nil, 0)
		errorIs(t, err, fabric.ErrInvalid, "before Enable")
		errorIs(t, x.Enable(nil), fabric.ErrInvalid)
		q := s.queue(t, 64)
		closeAtEnd(t, x)
		noError(t, x.Enable(q))
		errorIs(t, x.Enable(q), fabric.ErrInvalid)
		return newStation(t, s, x, q)
	}
	for i := range contexts {
		sends[i] = ready(e.OpenSend(i))
		x, err := e.OpenReceive(i)
		receives[i] = ready(x, err)
		if i == 0 {
			first = x
		}
	}
	for _, index := range []int{-1, contexts, 0} {
		_, err = e.OpenSend(index)
		errorIs(t, err, fabric.ErrInvalid)
	}
	errorIs(t, e.Close(), fabric.ErrBusy)
	errorIs(t, sends[0].post(t, fabric.Op{Kind: fabric.OpReceive, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
	errorIs(t, receives[0].post(t, fabric.Op{Kind: fabric.OpSend, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)
	errorIs(t, receives[0].post(t, fabric.Op{Kind: fabric.OpTaggedInject, Buf: make([]byte, 1)}).Err, fabric.ErrInvalid)

	self := insert(t, v, e)
	for i := range contexts {
		to := (i + 1) % contexts
		receives[to].others = []*station{sends[i]}
		got := make([]byte, 32)
		receives[to].must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: got, Context: uint64(to)})
		sends[i].must(t, fabric.Op{Kind: fabric.OpSend, Peer: self.Context(to, bits), Buf: fmt.Appendf(nil, "from %d", i)})
		c := receives[to].done(t)
		equal(t, uint64(to), c.Context)
		equal(t, fmt.Sprintf("from %d", i), string(got[:c.Len]))
		sends[i].done(t)
	}
	// A receive that is cancelled, and one that is in flight at the end.
	op := receives[0].must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
	noError(t, first.Cancel(op.Token))
	errorIs(t, receives[0].await(t).Err, fabric.ErrCanceled)
	receives[1].must(t, fabric.Op{Kind: fabric.OpReceive, Peer: fabric.AddressAny, Buf: make([]byte, 8)})
}

// A second handle of an endpoint posts with flags of its own.
func alias(t *trial) {
	s := openSite(t, t.hints(fabric.ReliableDatagram, bothMessages))
	a, b := s.pair(t, nil, nil)
	for _, try := range []func() error{
		func() error { _, err := a.e.OpenAlias(0, 0); return err },
		func() error { _, err := a.e.OpenAlias(fabric.Sending, fabric.MultiReceive); return err },
	} {
		errorIs(t, try(), fabric.ErrInvalid)
	}
	second, err := a.e.OpenAlias(fabric.Sending, fabric.DeliveryComplete)
	t.need("fi_ep_alias", err)
	closeAtEnd(t, second)
	errorIs(t, a.e.Close(), fabric.ErrBusy)
	x := newStation(t, s, second, a.q)
	x.others, b.others = []*station{b}, []*station{x}
	got := make([]byte, 8)
	b.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 1, Buf: got})
	x.must(t, fabric.Op{Kind: fabric.OpTaggedSend, Peer: a.peer, Tag: 1, Buf: []byte("alias"), Context: 4})
	c := b.done(t)
	equal(t, "alias", string(got[:c.Len]))
	equal(t, 4, x.done(t).Context)

	// What is in flight at the end of the alias is the endpoint's.
	op := x.must(t, fabric.Op{Kind: fabric.OpTaggedReceive, Peer: fabric.AddressAny, Tag: 2, Buf: got, Context: 5})
	noError(t, second.Close())
	_, err = second.Turn(nil, nil, 0)
	isTrue(t, fabric.IsClosed(err), "%v", err)
	noError(t, a.e.Cancel(op.Token))
	a.others = nil
	c = a.await(t)
	equal(t, 5, c.Context)
	errorIs(t, c.Err, fabric.ErrCanceled)
}

// The flags of operations without any can be changed, and read.
func operationFlags(t *trial) {
	a, _ := pairOf(t, bothMessages)
	errorIs(t, a.e.SetOperationFlags(fabric.Receiving, fabric.MultiReceive), fabric.ErrInvalid)
	errorIs(t, a.e.SetOperationFlags(7, 0), fabric.ErrInvalid)
	_, err := a.e.OperationFlags(7)
	errorIs(t, err, fabric.ErrInvalid)
	_, err = a.e.OperationFlags(fabric.Sending)
	t.need("FI_GETOPSFLAG", err)
	noError(t, a.e.SetOperationFlags(fabric.Sending, fabric.DeliveryComplete))
	flags, err := a.e.OperationFlags(fabric.Sending)
	noError(t, err)
	isTrue(t, flags&fabric.DeliveryComplete != 0, "%v", flags)
	_, err = a.e.OperationFlags(fabric.Receiving)
	noError(t, err)
}
