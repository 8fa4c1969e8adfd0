package fabrictest

import (
	"context"
	"errors"
	"slices"

	"github.com/weft-go/weft/fabric"
)

// office is a site at which endpoints of both sides connect.
type office struct {
	*site
	got []happening
}

// happening is what an event queue gave.
type happening struct {
	event fabric.Event
	err   error
}

func openOffice(t *trial) *office {
	t.Helper()
	return &office{site: openSite(t, t.hints(fabric.Connected, fabric.Messages))}
}

func (x *office) listen(t *trial) (p *fabric.PassiveEndpoint, address []byte) {
	t.Helper()
	p, err := x.fabric.OpenPassiveEndpoint(x.info)
	noError(t, err)
	closeAtEnd(t, p)
	noError(t, p.Listen(x.events))
	address, err = p.Name()
	noError(t, err)
	return p, address
}

// caller opens an endpoint that can connect.
func (x *office) caller(t *trial) *station {
	t.Helper()
	e, err := x.domain.OpenEndpoint()
	noError(t, err)
	return x.enable(t, e)
}

// answer opens one for a request.
func (x *office) answer(t *trial, r *fabric.ConnectionRequest) *station {
	t.Helper()
	e, err := r.OpenEndpoint(x.domain)
	noError(t, err)
	return x.enable(t, e)
}

func (x *office) enable(t *trial, e *fabric.Endpoint) *station {
	t.Helper()
	q := x.queue(t, 64)
	closeAtEnd(t, e)
	noError(t, e.EnableWith(fabric.Bindings{Send: q, Receive: q, Events: x.events}))
	s := newStation(t, x.site, e, q)
	s.e = e
	return s
}

// await returns the first event that fits, and keeps the others.
func (x *office) await(t *trial, what string, fits func(happening) bool) happening {
	t.Helper()
	if i := slices.IndexFunc(x.got, fits); i >= 0 {
		h := x.got[i]
		x.got = slices.Delete(x.got, i, i+1)
		return h
	}
	ctx := t.soon()
	for {
		event, err := x.events.ReadWait(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("no %s in %v", what, t.provider.Patience)
		}
		h := happening{event, err}
		if fits(h) {
			return h
		}
		x.got = append(x.got, h)
	}
}

func (x *office) request(t *trial) *fabric.ConnectionRequest {
	t.Helper()
	h := x.await(t, "connection request", func(h happening) bool { _, ok := h.event.(*fabric.ConnectionRequest); return ok })
	return h.event.(*fabric.ConnectionRequest)
}

func (x *office) connected(t *trial, s *station) fabric.ConnectedEvent {
	t.Helper()
	h := x.await(t, "connected event", func(h happening) bool {
		c, ok := h.event.(fabric.ConnectedEvent)
		return ok && c.Endpoint == s.e
	})
	return h.event.(fabric.ConnectedEvent)
}

func (x *office) failed(t *trial, s *station) *fabric.ConnectionError {
	t.Helper()
	var failure *fabric.ConnectionError
	x.await(t, "connection error", func(h happening) bool {
		return errors.As(h.err, &failure) && failure.Endpoint == s.e
	})
	return failure
}

// ended turns the endpoint until it has been told of the end, whether in order or
// by an error: some do not look by themselves.
func (x *office) ended(t *trial, s *station, inOrder bool) {
	t.Helper()
	is := func(h happening) bool {
		end, ok := h.event.(fabric.ShutdownEvent)
		var failure *fabric.ConnectionError
		return ok && end.Endpoint == s.e || !inOrder && errors.As(h.err, &failure) && failure.Endpoint == s.e
	}
	t.until("end of the connection", func(try int) bool {
		s.step(t, nil, try)
		event, ok, err := x.events.Read()
		if ok {
			x.got = append(x.got, happening{event, err})
		}
		return slices.ContainsFunc(x.got, is)
	})
	x.got = slices.DeleteFunc(x.got, is)
}

// couple connects two endpoints.
func (x *office) couple(t *trial) (a, b *station) {
	t.Helper()
	_, address := x.listen(t)
	return x.join(t, address)
}

// join connects an endpoint to where one listens.
func (x *office) join(t *trial, address []byte) (a, b *station) {
	t.Helper()
	a = x.caller(t)
	noError(t, a.e.Connect(address, nil))
	b = x.answer(t, x.request(t))
	noError(t, b.e.Accept(nil))
	x.connected(t, a)
	x.connected(t, b)
	pairUp(a, b)
	return a, b
}

// pairUp has two stations drive each other.
func pairUp(a, b *station) { a.others, b.others = []*station{b}, []*station{a} }
