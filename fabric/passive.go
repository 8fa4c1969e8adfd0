package fabric

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-go/weft/cgo"
)

// PassiveEndpoint listens for connections (fid_pep). Any goroutine may use it.
type PassiveEndpoint struct {
	handle
	raw    cgo.PassiveEndpoint
	fabric *Fabric
	info   *Info

	// preparing guards events, which is nil until Listen.
	preparing sync.Mutex
	events    *EventQueue
	// refusedName is what SetName was given last, if the provider did not take it.
	refusedName string
	failed      bool // libfabric has not let it listen

	// waiting guards the requests that are not decided. It may be taken within
	// the lock of the event queue.
	waiting  sync.Mutex
	requests map[*ConnectionRequest]struct{}
	answered map[*Endpoint]struct{} // that were opened for requests
	left     accepted               // what sockets may have forgotten
	gone     bool                   // libfabric's endpoint is closed
	rejected time.Time
}

// OpenPassiveEndpoint makes an endpoint that can listen where the info's source
// says, at a port of the provider's choice if that has none. An info of another type
// than Connected, or without a source, is ErrInvalid.
//
// Implements: int fi_passive_ep(...)
func (f *Fabric) OpenPassiveEndpoint(i *Info) (*PassiveEndpoint, error) {
	const op = "fi_passive_ep"
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer f.leave()
	if err := i.there(op); err != nil {
		return nil, err
	}
	if detail := i.wrong(f.provider); detail != "" {
		return nil, f.invalid(op, detail)
	}
	if i.Endpoint() != Connected || len(i.a.Source) == 0 {
		// sockets and tcp read the source without a look.
		return nil, f.invalid(op, "it takes an info of the connected type with a source (Hints.Endpoint, Hints.Source)")
	}
	raw, code := f.raw.OpenPassiveEndpoint(i.raw)
	if code != 0 {
		return nil, fail(op, f.provider, int(code))
	}
	p := &PassiveEndpoint{raw: raw, fabric: f, info: i, requests: make(map[*ConnectionRequest]struct{}), answered: make(map[*Endpoint]struct{})}
	p.open("passive endpoint", i.Provider(), &f.handle)
	return p, nil
}

// rejectTime is plenty for a rejection to be sent.
const rejectTime = 25 * time.Millisecond

// SetBacklog says how many requests may wait unread, 1 to 65536, before Listen;
// ErrInvalid after it. ErrNotSupported says that the provider has a number of its
// own.
//
// Implements: int fi_control(...)
func (p *PassiveEndpoint) SetBacklog(n int) error {
	return p.prepare("fi_control of backlog", func(op string) error {
		if n < 1 || n > 1<<16 {
			return p.invalid(op, "a backlog is 1 to "+strconv.Itoa(1<<16)+", not "+strconv.Itoa(n))
		}
		return fail(op, p.provider, int(p.raw.SetBacklog(n)))
	})
}

// SetName says where to listen, before Listen; ErrInvalid after it. It does not keep
// the bytes. Not every provider lets one choose other than by the info's source.
//
// Implements: int fi_setname(...)
func (p *PassiveEndpoint) SetName(address []byte) error {
	return p.prepare("fi_setname", func(op string) error {
		if detail := wrongAddress(p.info, address); detail != "" {
			return p.invalid(op, detail)
		}
		set := p.raw.SetName
		if doubtsCallers(p.provider) {
			set = p.raw.SetNameDoubting
		}
		err := fail(op, p.provider, int(set(address)))
		p.refusedName = ""
		if err != nil {
			p.refusedName = addressName(p.info.AddressFormat(), address)
		}
		return err
	})
}

// prepare runs what can be done before Listen.
func (p *PassiveEndpoint) prepare(op string, do func(op string) error) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	p.preparing.Lock()
	defer p.preparing.Unlock()
	switch {
	case p.failed:
		return p.invalid(op, "Listen has failed: the endpoint can only be closed")
	case p.events != nil:
		return p.invalid(op, "the endpoint listens already")
	}
	return do(op)
}

// Listen lets peers connect. Their requests come out of the event queue, each as
// a *ConnectionRequest. It can be called once; ErrInvalid after that, and for a queue
// of another fabric. EADDRNOTAVAIL says that SetName was refused an address, and that the
// endpoint needs another; where libfabric cannot listen, the endpoint can only be closed.
// The queue cannot be closed before the endpoint.
//
// Implements: int fi_pep_bind(...), fi_listen(...)
func (p *PassiveEndpoint) Listen(q *EventQueue) error {
	return p.prepare("fi_listen", func(op string) error {
		switch {
		case q == nil:
			return p.invalid(op, "it takes an event queue")
		case q.fabric != p.fabric:
			return p.invalid(op, "the event queue is of another fabric")
		case p.refusedName != "":
			// libfabric would say that an argument is invalid, or a descriptor bad.
			return noNameAnyMore(op, p.provider, p.refusedName)
		}
		if err := q.enter(); err != nil {
			return err
		}
		defer q.leave()
		if code := p.raw.BindEventQueue(q.raw); code != 0 {
			return fail("fi_pep_bind", p.provider, int(code))
		}
		p.adopt(&q.handle)
		q.attach(p.raw.Identity(), p)
		p.events = q
		listen := p.raw.Listen
		if doubtsCallers(p.provider) {
			listen = p.raw.ListenDoubting
		}
		err := fail(op, p.provider, int(listen()))
		p.failed = err != nil
		return err
	})
}

// Name returns where the endpoint listens, for peers to Connect to, once it does;
// ErrInvalid before. The caller may keep it.
//
// Implements: int fi_getname(...)
func (p *PassiveEndpoint) Name() ([]byte, error) {
	const op = "fi_getname"
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.preparing.Lock()
	listens := p.events != nil && !p.failed
	p.preparing.Unlock()
	if !listens {
		return nil, p.invalid(op, "the endpoint does not listen")
	}
	name, code := p.raw.Name()
	return name, fail(op, p.provider, int(code))
}

// request makes a request of an event about p, which may be closed already, or
// nil.
func (p *PassiveEndpoint) request(i *Info, data []byte) *ConnectionRequest {
	i.offered = true
	if p != nil {
		i.fillIn(p.info)
	}
	r := &ConnectionRequest{Data: data, info: i, passive: p}
	if p == nil {
		r.decided.Store(true)
		return r
	}
	p.waiting.Lock()
	defer p.waiting.Unlock()
	if p.gone {
		r.decided.Store(true)
	} else {
		p.requests[r] = struct{}{}
	}
	return r
}

// Close ends the listening. Requests that were neither opened nor rejected are
// rejected; connections that were accepted go on.
//
// Implements: int fi_close(...)
func (p *PassiveEndpoint) Close() error {
	return p.close(func() error {
		if p.events != nil {
			// What has come in but was not read must not stay in the provider.
			p.events.lock.Lock()
			defer p.events.lock.Unlock()
			p.events.drain()
			p.endSilent()
		}
		p.waiting.Lock()
		defer p.waiting.Unlock()
		p.gone = true
		for r := range p.requests {
			if r.decide() {
				// The peer may be gone, which is as good.
				p.raw.Reject(r.info.raw, nil)
				runtime.KeepAlive(r.info)
				p.rejected = time.Now()
			}
		}
		clear(p.requests)
		if core(p.provider) == "sockets" {
			// The peers are told by a thread, which forgets them if it is stopped
			// before it has come to it.
			time.Sleep(rejectTime - time.Since(p.rejected))
		}
		name, code := p.raw.Name()
		if err := fail("fi_close of passive endpoint", p.provider, int(p.raw.Close())); err != nil {
			return err
		}
		if core(p.provider) == "sockets" && code == 0 && p.events != nil {
			if left, listening := acceptedAt(name, nil); !listening {
				p.left = left
			}
			p.closeLeft()
		}
		return nil
	})
}

// closeLeft closes what sockets has accepted and forgotten, once nothing else of
// what it has accepted is open. The caller has the lock.
func (p *PassiveEndpoint) closeLeft() {
	if len(p.answered) == 0 {
		p.left.closeLeft()
		p.left = nil
	}
}

// doubtsCallers says of providers that their endpoints would believe whatever calls them, or answers,
// and that weft looks at it before (cgo/callers.c, cgo/introductions.c).
func doubtsCallers(provider string) bool { return core(provider) == "sockets" && cgo.DoubtCallers() }

// doubtsDatagrams says of providers that any datagram that is not a peer's would end the process, and
// that weft looks at it before (cgo/datagrams.c).
func doubtsDatagrams(provider string) bool {
	return strings.HasSuffix(provider, ";ofi_rxd") && cgo.DoubtDatagrams()
}

// enable is fi_enable.
func enable(provider string, raw cgo.Endpoint, room sharedRoom) cgo.Code {
	switch {
	case doubtsCallers(provider):
		return raw.EnableDoubting()
	case doubtsDatagrams(provider):
		return raw.EnableDatagrams()
	case strings.HasSuffix(provider, ";ofi_rxm") && !olderThanTwo:
		return raw.EnableListening()
	}
	return room.enable(raw)
}

// endSilent ends the connections of peers that have not said anything yet.
func (p *PassiveEndpoint) endSilent() {
	name, code := p.raw.Name()
	if code != 0 || core(p.provider) == "sockets" {
		return
	}
	// Each look would accept one more of those that wait.
	stopListening(name)
	silent, _ := acceptedAt(name, p.heardOf)
	silent.shutDown(p.events.drain)
}

// heardOf says whether a connection is that of a request, or of an endpoint.
func (p *PassiveEndpoint) heardOf(peer socketName) bool {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	for r := range p.requests {
		if isAt(peer, r.info.a.Destination) {
			return true
		}
	}
	for e := range p.answered {
		if isAt(peer, e.connection.request.info.a.Destination) {
			return true
		}
	}
	return false
}
