package fabric_test

import (
	"errors"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

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
	d := w.domain()
	if d.f.info != p.f.info {
		return
	}
	e := w.unborn(d)
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
		// A peer may have asked for memory that it may not have.
		if !errors.As(err, &failed) && !errors.Is(err, syscall.EACCES) {
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
