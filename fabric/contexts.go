package fabric

import (
	"cmp"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// SharedContext as the number of an info's contexts says that the endpoint uses
// a context that it shares with others (FI_SHARED_CONTEXT).
const SharedContext = ^uint64(0)

// WithContexts returns the info with other numbers of send and receive
// contexts: those of a scalable endpoint, or [SharedContext]. What a domain
// allows is in its Limits, and is looked at where the info is used. i stays as it is.
//
// Implements: struct fi_info *fi_dupinfo(...)
func (i *Info) WithContexts(send, receive uint64) (*Info, error) {
	if err := i.there("fi_dupinfo"); err != nil {
		return nil, err
	}
	raw, code := i.raw.Duplicate()
	runtime.KeepAlive(i)
	if code != 0 {
		return nil, fail("fi_dupinfo", i.Provider(), int(code))
	}
	raw.SetContexts(send, receive)
	other := newInfo(raw)
	other.offered = i.offered
	other.fillIn(i)
	return other, nil
}

// tooManyContexts says that an endpoint would have more than there are, or "". One that is not
// scalable has one of each, or shares it.
func (i *Info) tooManyContexts(scalable bool) string {
	limits := i.Limits()
	within := func(n, most uint64) bool { return n <= most || !scalable && (n == 1 || n == SharedContext) }
	if within(i.SendContexts(), limits.EndpointSendContexts) && within(i.ReceiveContexts(), limits.EndpointReceiveContexts) {
		return ""
	}
	return "an endpoint here has up to " + strconv.FormatUint(limits.EndpointSendContexts, 10) + " send and " +
		strconv.FormatUint(limits.EndpointReceiveContexts, 10) + " receive contexts"
}

// Context is one direction of an endpoint that consists of several
// ([ScalableEndpoint]), or that several endpoints share ([SharedReceive]). Like an
// [Endpoint] it may be used by one goroutine at a time, together with its
// completion queue. Contexts with different queues may be used at the same time,
// unless the hints said OneThread.
type Context struct {
	endpoint *Endpoint
}

// unopened is what stands behind a context or an alias that was never opened: its
// methods say so.
var unopened Endpoint

func (c *Context) part() *Endpoint { return cmp.Or(c.endpoint, &unopened) }

// Enable binds the context to its completion queue and to counters, and makes
// it ready. It can be called once; if it failed within libfabric, the context can only
// be closed. ErrInvalid says what is missing or does not fit, ErrBusy that a counter
// counts deferred operations. What was bound cannot be closed before the context. It keeps others from the queue
// meanwhile, as [Endpoint.EnableWith] does.
//
// Implements: int fi_ep_bind(...), fi_enable(...)
func (c *Context) Enable(q *CompletionQueue, counters ...CounterBinding) error {
	e := c.part()
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	switch {
	case e.turn != nil:
		return e.invalid("fi_enable", "the context is enabled already")
	case e.bound:
		return e.invalid("fi_enable", failedBefore)
	case q == nil:
		return e.invalid("fi_enable", "the context needs a completion queue, which says when operations give their memory back")
	case q.domain != e.domain:
		return e.invalid("fi_enable", "the completion queue is of another domain")
	}
	if detail := wrongCounters(e, counters); detail != "" {
		return e.invalid("fi_enable", detail)
	}
	readmit, err := excludeFrom(q)
	if err != nil {
		return err
	}
	defer readmit()
	held := (&Bindings{Counters: counters}).handles()
	if err := enterAll(held); err != nil {
		return err
	}
	defer leaveAll(held)
	if err := e.domain.countFor(e, counters); err != nil {
		return err
	}
	e.bound = true
	send, receive := q, (*CompletionQueue)(nil)
	if e.connection.part == receiveContext {
		send, receive = nil, q
	}
	if err := e.bindQueues(send, receive); err != nil {
		return err
	}
	if err := e.bindCounters(counters); err != nil {
		return err
	}
	return e.activate(send, receive, noRoom)
}

// Turn is that of an [Endpoint]. A send context takes no receives, and a receive
// context nothing else.
func (c *Context) Turn(posts []Op, completions []Completion, spins int) (reaped int, err error) {
	return c.part().Turn(posts, completions, spins)
}

// TurnWait is that of an [Endpoint].
func (c *Context) TurnWait(posts []Op, completions []Completion, waitMS int) (reaped int, err error) {
	return c.part().TurnWait(posts, completions, waitMS)
}

// Cancel is that of an [Endpoint], for operations that were posted here.
func (c *Context) Cancel(token Token) error { return c.part().Cancel(token) }

// Close closes the context. ErrBusy says which endpoints still use it.
// Operations in flight end without a completion, and their buffers are the caller's again
// on return. On sockets, Close of a context of a scalable endpoint waits for them, for a
// second; if they have not ended then, it ends the connections of all contexts, whose
// operations fail. The rest is put off until the endpoint is closed.
//
// Implements: int fi_close(...)
func (c *Context) Close() error { return c.part().Close() }

// ScalableEndpoint is an endpoint with several send and receive contexts behind
// one address, so that threads need not share one (fi_scalable_ep). Its methods
// may be called from any goroutine.
type ScalableEndpoint struct {
	handle
	raw    cgo.Endpoint
	domain *Domain
	info   *Info
	vector *AddressVector

	mu      sync.Mutex
	bound   bool // enabling it has begun in libfabric
	enabled bool
	// opened are the contexts that there have been. Providers do not all let
	// go of one that is closed before the endpoint is.
	opened map[contextIndex]struct{}
	// outlived are contexts that are closed for the program and not yet in libfabric.
	outlived []*Endpoint
}

type contextIndex struct {
	part  part
	index int
}

// OpenScalableEndpoint makes an endpoint with as many contexts as the info says;
// see [Info.WithContexts]. ErrInvalid says that it may not have so many,
// ErrNotSupported that the provider has no such endpoints.
//
// Implements: int fi_scalable_ep(...)
func (d *Domain) OpenScalableEndpoint(i *Info) (*ScalableEndpoint, error) {
	const op = "fi_scalable_ep"
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := i.there(op); err != nil {
		return nil, err
	}
	if detail := i.wrong(d.provider); detail != "" {
		return nil, d.invalid(op, detail)
	}
	if i.Endpoint() == Connected {
		// sockets makes one, which nobody could connect, and keeps its address vector.
		return nil, &Error{Op: op, Provider: d.provider, Errno: Errno(syscall.ENOSYS), Detail: "endpoints of connections are not scalable here"}
	}
	if detail := i.tooManyContexts(true); detail != "" {
		return nil, d.invalid(op, detail)
	}
	raw, code := d.raw.OpenScalableEndpoint(i.raw)
	if code != 0 {
		return nil, fail(op, d.provider, int(code))
	}
	s := &ScalableEndpoint{raw: raw, domain: d, info: i, opened: make(map[contextIndex]struct{})}
	s.open("scalable endpoint", d.provider, &d.handle)
	return s, nil
}

// Enable binds the endpoint to its address vector and, if it is not nil, to an
// event queue, and makes it ready. Contexts are opened after it. It can be called
// once; if it failed within libfabric, the endpoint can only be closed. ErrInvalid says
// what is missing or does not fit. What was bound cannot be
// closed before the endpoint.
//
// Implements: int fi_scalable_ep_bind(...), fi_enable(...)
func (s *ScalableEndpoint) Enable(v *AddressVector, q *EventQueue) error {
	const op = "fi_enable"
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.enabled:
		return s.invalid(op, "the endpoint is enabled already")
	case s.bound:
		return s.invalid(op, failedBefore)
	case v == nil:
		return s.invalid(op, "the endpoint needs an address vector")
	case !v.within(&s.domain.handle):
		return s.invalid(op, "the address vector is of another domain")
	case q != nil && q.fabric != s.domain.fabric:
		return s.invalid(op, "the event queue is of another fabric")
	}
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	if q != nil {
		if err := q.enter(); err != nil {
			return err
		}
		defer q.leave()
	}
	s.bound = true
	if code := s.raw.BindScalableVector(v.raw); code != 0 {
		return fail("fi_scalable_ep_bind of address vector", s.provider, int(code))
	}
	s.adopt(&v.handle)
	if q != nil {
		if code := s.raw.BindScalableEvents(q.raw); code != 0 {
			return fail("fi_scalable_ep_bind of event queue", s.provider, int(code))
		}
		s.adopt(&q.handle)
	}
	if code := enable(s.provider, s.raw, noRoom); code != 0 {
		return fail(op, s.provider, int(code))
	}
	s.enabled, s.vector = true, v
	return nil
}

// Name returns the endpoint's address, for peers to insert, once it is enabled;
// ErrInvalid before. It is that of all its contexts; [Address.Context] names one of
// them. The caller may keep it.
//
// Implements: int fi_getname(...)
func (s *ScalableEndpoint) Name() ([]byte, error) {
	const op = "fi_getname"
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enabled {
		return nil, s.invalid(op, "the endpoint is not enabled yet")
	}
	name, code := s.raw.Name()
	return name, fail(op, s.provider, int(code))
}

// OpenSend opens the send context with the index, from 0, once in the life of the
// endpoint. ErrInvalid says that there is no such context, that it was opened
// before, or that the endpoint is not enabled yet.
//
// Implements: int fi_tx_context(...)
func (s *ScalableEndpoint) OpenSend(index int) (*Context, error) {
	return s.openContext("fi_tx_context", "send context", contextIndex{transmitContext, index}, (*Info).SendContexts, cgo.Endpoint.OpenTransmit)
}

// OpenReceive opens the receive context with the index, as OpenSend does.
//
// Implements: int fi_rx_context(...)
func (s *ScalableEndpoint) OpenReceive(index int) (*Context, error) {
	return s.openContext("fi_rx_context", "receive context", contextIndex{receiveContext, index}, (*Info).ReceiveContexts, cgo.Endpoint.OpenReceive)
}

func (s *ScalableEndpoint) openContext(op, kind string, key contextIndex, number func(*Info) uint64,
	open func(cgo.Endpoint, int, cgo.Info) (cgo.Endpoint, cgo.Code),
) (*Context, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	index, count := key.index, number(s.info)
	_, used := s.opened[key]
	switch {
	case !s.enabled:
		return nil, s.invalid(op, "the scalable endpoint is not enabled yet")
	case index < 0 || uint64(index) >= count:
		return nil, s.invalid(op, "the endpoint has "+strconv.FormatUint(count, 10)+" of them, from 0, and no "+strconv.Itoa(index))
	case used:
		return nil, s.invalid(op, "number "+strconv.Itoa(index)+" was opened already")
	}
	raw, code := open(s.raw, index, s.info.raw)
	if code != 0 {
		return nil, fail(op, s.provider, int(code))
	}
	s.opened[key] = struct{}{}
	c := newContext(raw, s.domain, s.info, key.part, kind, &s.handle)
	c.endpoint.vector, c.endpoint.scalable = s.vector, s
	return c, nil
}

func newContext(raw cgo.Endpoint, d *Domain, i *Info, p part, kind string, parent *handle) *Context {
	e := &Endpoint{raw: raw, domain: d, several: newSeveral()}
	e.connection.info, e.connection.part = i, p
	e.connection.restricted.Store(true)
	e.open(kind, d.provider, parent)
	return &Context{endpoint: e}
}

// Close closes the endpoint. ErrBusy says which contexts are still open.
//
// Implements: int fi_close(...)
func (s *ScalableEndpoint) Close() error {
	err := s.close(func() error { return fail("fi_close of scalable endpoint", s.provider, int(s.raw.Close())) })
	if err != nil {
		return err
	}
	return s.endOutlived()
}

// Context names one of the receive contexts of a peer that is a scalable
// endpoint, where bits is AddressVectorConfig.ReceiveBits of the address vector.
// What cannot be is AddressAny.
//
// Implements: fi_addr_t fi_rx_addr(...)
func (a Address) Context(index, bits int) Address {
	if bits < 1 || bits > 32 || index < 0 || index >= 1<<bits || uint64(a)>>(64-bits) != 0 {
		return AddressAny
	}
	return Address(cgo.ReceiveAddress(uint64(a), index, bits))
}
