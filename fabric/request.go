package fabric

import (
	"runtime"
	"sync/atomic"
	"time"
)

// ConnectionRequest is the event that a peer wants to connect (FI_CONNREQ). The
// program decides once: OpenEndpoint and then Accept, or Reject; a second decision,
// and one after Close of the passive endpoint, is an error. Until then the provider
// holds the peer's connection. Any goroutine may decide.
type ConnectionRequest struct {
	// Data is what the peer gave to Connect. It comes from outside, and is the
	// program's to keep.
	Data []byte

	info    *Info
	passive *PassiveEndpoint
	decided atomic.Bool
}

func (r *ConnectionRequest) pending() bool { return !r.decided.Load() }

// decide says whether the decision is the caller's.
func (r *ConnectionRequest) decide() bool { return r.decided.CompareAndSwap(false, true) }

// Info describes the connection that is offered. A domain for it can be opened
// with it; that of another connection of the same listener will do as well.
// Endpoints for anything but requests are not opened with it, nor with a domain's
// that was: that is ErrInvalid, and [Domain.OpenEndpointFor] takes another info.
func (r *ConnectionRequest) Info() *Info {
	if r.info == nil {
		return new(Info)
	}
	return r.info
}

// Passive is the endpoint that the request came to.
func (r *ConnectionRequest) Passive() *PassiveEndpoint { return r.passive }

// OpenEndpoint makes the endpoint of the connection, to be enabled with
// EnableWith and then to Accept. Where it fails, the request can still be rejected.
// ErrInvalid says that it was answered before.
//
// Implements: int fi_endpoint(...)
func (r *ConnectionRequest) OpenEndpoint(d *Domain) (*Endpoint, error) {
	const op = "fi_endpoint"
	if err := r.info.there(op); err != nil {
		return nil, err
	}
	if d == nil {
		return nil, &Error{Op: op, Provider: r.info.Provider(), Errno: errnoInvalid, Detail: "no domain"}
	}
	if p := r.passive; p != nil && p.enter() == nil {
		// It must not close meanwhile: the provider looks at it, and what fails here
		// is for it to reject.
		defer p.leave()
	}
	if err := r.take(op); err != nil {
		return nil, err
	}
	e, err := d.openEndpoint(r.info)
	if err != nil {
		// It may still be rejected.
		r.decided.Store(false)
		return nil, err
	}
	e.connection.request = r
	if p := r.passive; p != nil {
		p.waiting.Lock()
		p.answered[e] = struct{}{}
		p.waiting.Unlock()
	}
	r.forget()
	return e, nil
}

// Reject refuses the connection and sends data along, which the peer finds in
// its *ConnectionError, and which are the caller's again on return. ErrInvalid says
// that they are more than OptionConnectionData, or that the request was answered before.
//
// Implements: int fi_reject(...)
func (r *ConnectionRequest) Reject(data []byte) error {
	const op = "fi_reject"
	if r.passive == nil {
		return &Error{Op: op, Errno: errnoInvalid, Detail: "the request is of no known endpoint"}
	}
	p := r.passive
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	if detail := wrongData(data, p.raw.SizeOption); detail != "" {
		return p.invalid(op, detail)
	}
	if err := r.take(op); err != nil {
		return err
	}
	if code := p.raw.Reject(r.info.raw, data); code != 0 {
		if Errno(code) == errnoInvalid {
			// Refused for its arguments: nothing has happened.
			r.decided.Store(false)
		}
		return fail(op, p.provider, int(code))
	}
	runtime.KeepAlive(r.info)
	p.waiting.Lock()
	p.rejected = time.Now()
	p.waiting.Unlock()
	r.forget()
	return nil
}

func (r *ConnectionRequest) take(op string) error {
	if r.decide() {
		return nil
	}
	return &Error{
		Op: op, Provider: r.info.Provider(), Errno: errnoInvalid,
		Detail: "the request was answered already, or its passive endpoint is closed",
	}
}

func (r *ConnectionRequest) forget() {
	if p := r.passive; p != nil {
		p.waiting.Lock()
		delete(p.requests, r)
		p.waiting.Unlock()
	}
}

// ended takes note that the endpoint of the request is closed.
func (r *ConnectionRequest) ended(e *Endpoint) {
	if p := r.passive; p != nil {
		p.waiting.Lock()
		delete(p.answered, e)
		p.closeLeft()
		p.waiting.Unlock()
	}
}
