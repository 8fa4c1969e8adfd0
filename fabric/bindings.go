package fabric

import (
	"cmp"

	"github.com/weft-go/weft/cgo"
)

// Bindings are what an endpoint works with. Which of them it needs depends on
// its type:
//
//	ReliableDatagram   Vector, Events, Send and Receive, or one of the two
//	Datagram           Vector, Send and Receive, or one of the two
//	Connected          Events, Send and Receive, or one of the two
//
// All must be of the endpoint's domain, the event queue of its fabric. The
// endpoint holds them until it is closed.
type Bindings struct {
	// Vector has the peers; a connected endpoint has none.
	Vector *AddressVector
	// Send and Receive are where operations complete; they may be the same. An
	// endpoint with one of them takes no operations of the other direction; what it
	// hears of peers' writes is in the one that it has. With two, Turn reads both, and
	// TurnWait blocks in Send alone.
	Send, Receive *CompletionQueue
	// Events tells about connections and failures; nil stands for the queue of the
	// domain ([Domain.BindEvents]), if it has one. A reliable datagram endpoint
	// needs one too: without one, the efa provider ends the process on an
	// internal error.
	Events *EventQueue
	// SharedSend and SharedReceive are for an endpoint whose info says so
	// ([Info.WithContexts]), and must be given then. Receive is the queue of
	// SharedReceive.
	SharedSend    *SharedSend
	SharedReceive *SharedReceive
	// Counters count beside the queues, each of them an event once. The slice is the caller's again when
	// EnableWith returns.
	Counters []CounterBinding
}

// CounterBinding says what of an endpoint a counter counts.
type CounterBinding struct {
	Counter *Counter
	Events  CounterEvents // some of CountSends to CountRemoteWrites
}

// EnableWith binds the endpoint to what it works with and makes it ready. It can
// be called once; an endpoint for which it failed within libfabric can only be
// closed. ErrInvalid says what is missing or does not fit, ErrBusy that a counter
// counts deferred operations, or that a shared receive context has messages of too many
// endpoints that are closed, EADDRNOTAVAIL that the endpoint has no address, as after a SetName that was
// refused, and needs another; nothing is bound then. On shm, and on efa with shm within a host,
// ENOSPC says that /dev/shm has no room for its 16 MiB. What was bound cannot
// be closed before the endpoint. A ReadWait of the queues by another goroutine is
// ended, and their calls wait meanwhile; other endpoints of the queues must not be in
// a turn.
//
// Implements: int fi_ep_bind(...), fi_enable(...)
func (e *Endpoint) EnableWith(b Bindings) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if b.Events == nil {
		b.Events = e.domain.eventQueue()
	}
	if detail := b.wrong(e); detail != "" {
		return e.invalid("fi_enable", detail)
	}
	if err := e.noAddress(); err != nil {
		return err
	}
	if b.SharedReceive != nil {
		if err := b.SharedReceive.part().roomForSharer(); err != nil {
			return err
		}
	}
	if e.hasInner() || e.shmIsInside() {
		setup.Lock()
		defer setup.Unlock()
	}
	// Before anything else is held: a shared context that is closed has its queue first, too.
	readmit, err := excludeFrom(b.Send, b.Receive)
	if err != nil {
		return err
	}
	defer readmit()
	held := b.handles()
	if err := enterAll(held); err != nil {
		return err
	}
	defer leaveAll(held)
	room, err := e.reserveRoom()
	if err != nil {
		return err
	}
	defer room.release()
	// The last that may refuse: what was bound once cannot be bound again.
	if err := e.domain.countFor(e, b.Counters); err != nil {
		return err
	}
	e.bound = true
	if err := b.bind(e); err != nil {
		return e.endRefused(err)
	}
	e.connection.events, e.vector, e.neighbour.vector = b.Events, b.Vector, b.Vector
	if b.SharedReceive != nil {
		e.connection.part, e.shared = sharingReceive, b.SharedReceive.part()
		e.connection.restricted.Store(true)
	}
	if e.Info().Endpoint() == Connected {
		e.connected = true
		e.connection.restricted.Store(true)
		b.Events.attach(e.raw.Identity(), e)
	}
	return e.activate(b.Send, b.Receive, room)
}

// endRefused ends an endpoint in libfabric that is not enabled for an error: whoever reads its queues would
// have them look at it. The program closes it all the same.
func (e *Endpoint) endRefused(err error) error {
	if (core(e.provider) == "shm" || core(e.provider) == "efa") && e.closeRaw() == 0 {
		e.severed = true
	}
	return err
}

// wrong says what is missing or does not fit.
func (b *Bindings) wrong(e *Endpoint) string {
	info := e.Info()
	sharesSend := info.SendContexts() == SharedContext
	sharesReceive := info.ReceiveContexts() == SharedContext
	switch {
	case e.turn != nil:
		return "the endpoint is enabled already"
	case e.bound:
		return failedBefore
	case info.Endpoint() == Connected && b.Vector != nil:
		return "a connected endpoint has no address vector"
	case info.Endpoint() != Connected && b.Vector == nil:
		return "the endpoint needs an address vector"
	case info.Endpoint() != Datagram && b.Events == nil:
		return "the endpoint needs an event queue"
	case b.Send == nil && b.Receive == nil:
		return "the endpoint needs a completion queue, which says when operations give their memory back"
	case b.Vector != nil && !b.Vector.within(&e.domain.handle):
		return "the address vector is of another domain"
	case b.Send != nil && b.Send.domain != e.domain, b.Receive != nil && b.Receive.domain != e.domain:
		return "the completion queue is of another domain"
	case b.Events != nil && b.Events.fabric != e.domain.fabric:
		return "the event queue is of another fabric"
	case sharesSend != (b.SharedSend != nil):
		return "a shared send context is for an endpoint whose info has SharedContext, and for no other"
	case sharesReceive != (b.SharedReceive != nil):
		return "a shared receive context is for an endpoint whose info has SharedContext, and for no other"
	case b.SharedSend != nil && b.SharedSend.domain != e.domain:
		return "the shared send context is of another domain"
	case b.SharedReceive != nil && b.SharedReceive.part().domain != e.domain:
		return "the shared receive context is of another domain"
	case b.SharedReceive != nil && b.SharedReceive.endpoint.receive != b.Receive:
		return "the endpoint's receive queue must be that of its shared receive context"
	}
	return wrongCounters(e, b.Counters)
}

// failedBefore: libfabric has some of the bindings, and would count them twice.
const failedBefore = "it has failed before: the endpoint can only be closed"

// handles are those of everything but completion queues.
func (b *Bindings) handles() []*handle {
	var list []*handle
	if b.Vector != nil {
		list = append(list, &b.Vector.handle)
	}
	if b.Events != nil {
		list = append(list, &b.Events.handle)
	}
	if b.SharedSend != nil {
		list = append(list, &b.SharedSend.handle)
	}
	if b.SharedReceive != nil {
		list = append(list, &b.SharedReceive.endpoint.handle)
	}
	for _, c := range b.Counters {
		list = append(list, &c.Counter.handle)
	}
	return list
}

// hasEndpoint says whether one is bound to the vector.
func (v *AddressVector) hasEndpoint() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.children {
		if c.kind == "endpoint" {
			return true
		}
	}
	return false
}

// bind binds one thing after the other. The endpoint holds what is bound, even
// if a later one is refused.
func (b *Bindings) bind(e *Endpoint) error {
	one := func(what string, h *handle, code cgo.Code) error {
		if code == 0 {
			e.adopt(h)
		}
		return fail("fi_ep_bind of "+what, e.provider, int(code))
	}
	if b.Vector != nil {
		code := e.raw.BindAddressVector(b.Vector.raw)
		if code == cgo.NoSystem && b.Vector.hasEndpoint() {
			return &Error{
				Op: "fi_ep_bind of address vector", Provider: e.provider, Errno: Errno(code),
				Detail: "a vector is for one endpoint here, and this one has another",
			}
		}
		if err := one("address vector", &b.Vector.handle, code); err != nil {
			return err
		}
	}
	if b.Events != nil {
		if err := one("event queue", &b.Events.handle, e.raw.BindEventQueue(b.Events.raw)); err != nil {
			return err
		}
	}
	if b.SharedSend != nil {
		if err := one("shared send context", &b.SharedSend.handle, e.raw.BindSharedTransmit(b.SharedSend.raw)); err != nil {
			return err
		}
	}
	if b.SharedReceive != nil {
		s := b.SharedReceive.endpoint
		if err := one("shared receive context", &s.handle, e.raw.BindSharedReceive(s.raw)); err != nil {
			return err
		}
	}
	// Of the providers only sockets does with one queue for one direction: the others
	// refuse it, and shm dies in fi_enable. So the queue is there for both, and the
	// endpoint posts nothing in the other direction.
	if err := e.bindQueues(cmp.Or(b.Send, b.Receive), cmp.Or(b.Receive, b.Send)); err != nil {
		return err
	}
	if err := e.bindCounters(b.Counters); err != nil {
		return err
	}
	return e.countInjected(b.Counters)
}

// bindQueues binds the queues of the two directions, one of which may be nil.
func (e *Endpoint) bindQueues(send, receive *CompletionQueue) error {
	one := func(q *CompletionQueue, flags uint64) error {
		code := e.raw.BindCompletionQueue(q.raw, flags)
		if code == 0 {
			e.adopt(&q.handle)
		}
		return fail("fi_ep_bind of completion queue", e.provider, int(code))
	}
	if send != nil && send == receive {
		return one(send, cgo.BindTransmit|cgo.BindReceive)
	}
	if send != nil {
		if err := one(send, cgo.BindTransmit); err != nil {
			return err
		}
	}
	if receive != nil {
		return one(receive, cgo.BindReceive)
	}
	return nil
}

// within says whether p is a parent of the handle.
func (h *handle) within(p *handle) bool {
	for _, parent := range h.parents {
		if parent == p {
			return true
		}
	}
	return false
}
