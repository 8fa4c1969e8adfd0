package fabric

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-go/weft/cgo"
)

// Endpoint sends and receives (fid_ep). It is opened, enabled with what it works
// with, and then posts and reads by Turn. It may be used by one goroutine at a
// time, together with its completion queues, address vector, aliases and groups;
// Close by any.
type Endpoint struct {
	handle
	raw    cgo.Endpoint
	domain *Domain
	turn   *cgo.Turn // nil until the endpoint is enabled
	bound  bool      // enabling it has begun in libfabric
	// refusedName is what SetName was given last, if the provider did not take it.
	refusedName string
	// turning: somebody is in a turn. It is no lock, for which each turn would have to wait: what
	// two goroutines make of it is a data race, and finds most of them before libfabric does.
	turning bool
	// Where operations complete: often one queue for both directions. An
	// endpoint may also have one for one direction only.
	send    *CompletionQueue
	receive *CompletionQueue
	// vector has the peers that operations name, if they name any.
	vector *AddressVector
	// connected: there is one peer, whatever an operation names.
	connected bool

	pace       pace
	batching   bool
	undirected bool // untagged receives take messages of anybody
	takesAny   bool // all receives do, though the endpoint is opened with DirectedReceive
	unmixed    bool // receives from anybody and from one peer are not there together
	registered bool // what is not registered ends the process
	singly     bool // libfabric gets receives for one message each
	drains     bool // a message is discarded by being received
	several    *several
	// spillsEmpty: only receives without a buffer have one for what does not fit.
	spillsEmpty bool
	// confirmsEarly: what was delivered may be complete before the device is done with it.
	confirmsEarly bool
	forgetsReads  bool // that fail, and so never their memory
	// sendsLongWrites: to have peers read them ends those.
	sendsLongWrites bool
	fetching        fetching
	connection      connection
	groups          []*Group
	multicast       []Address // of the groups that it has joined
	joins           int       // of groups, ever
	neighbour       neighbour
	abandoned       bool              // its operations were given up
	severed         bool              // closed in libfabric only
	spill           *waste            // where messages go that do not fit, or that nobody has received
	awaited         bool              // something was deferred that has to do with it
	scalable        *ScalableEndpoint // that a context is of, or nil
	links           *links            // of an endpoint of sockets, if they are known
	arrivals        arrivals          // of an endpoint of tcp
	injected        injected
	// sendFlags are those of operations that are posted without any.
	sendFlags OpFlags
	ownFlags  OpFlags                      // that weft itself gives an operation
	atomics   atomic.Pointer[atomicLimits] // nil until there is an atomic operation
	// deviceAlone says that the program has forbidden what stays within the host to go by shm.
	deviceAlone atomic.Bool

	hungUp  bool        // severed for the program, and not closed in libfabric
	shared  *Endpoint   // the context that it receives into, or nil
	sharing sync.Mutex  // held by who ends those
	sharers []*Endpoint // of such a context: those that are closed for the program only
	parted  bool        // one of those, whose connections were seen to end
	heldAt  time.Time   // since when it is one of those
	// unreceived is what such a context, of sockets, has of messages, if that is known.
	unreceived      unreceived
	unreceivedKnown bool
	countsReceives  []*Counter // those that are bound to it for that
}

// OpenEndpoint makes an endpoint of the domain's kind. It can be used after
// Enable or EnableWith.
//
// Implements: int fi_endpoint(...)
func (d *Domain) OpenEndpoint() (*Endpoint, error) { return d.OpenEndpointFor(d.info) }

// Enable binds the endpoint to its address vector, to its completion queue for
// both directions and to its event queue, and makes it ready, for a reliable
// datagram endpoint that shares nothing. All three must be given: without an
// event queue, the efa provider ends the process on an internal error. It can be
// called once. EnableWith is the general form, and says what the errors are.
//
// Implements: int fi_ep_bind(...), fi_enable(...)
func (e *Endpoint) Enable(v *AddressVector, q *CompletionQueue, ev *EventQueue) error {
	return e.EnableWith(Bindings{Vector: v, Send: q, Receive: q, Events: ev})
}

// activate is the end of enabling: everything is bound. send and receive are the
// queues of the two directions; one of them may be nil.
func (e *Endpoint) activate(send, receive *CompletionQueue, room sharedRoom) error {
	if core(e.provider) == "shm" {
		if err := e.takeFreeName(); err != nil {
			return e.endRefused(err)
		}
	}
	guardReach(e, send, receive)
	var code cgo.Code
	e.arrivals = arrivalsIn(e, []*CompletionQueue{send, receive}, func() { code = enable(e.provider, e.raw, room) })
	if code != 0 {
		return e.endRefused(e.enableError(code))
	}
	if confusesStrangers(e.provider) {
		// Where the endpoint is made in another way, it is not known to be wrong.
		e.raw.RefuseStrangers()
	}
	first := send
	if first == nil {
		first = receive
	}
	turn, ok := first.newTurn(e.raw, opsOf(send, receive))
	if !ok {
		return fail("turn", e.provider, int(syscall.ENOMEM))
	}
	e.send, e.receive, e.turn = send, receive, turn
	for _, q := range e.queues() {
		q.bound.Add(1)
	}
	e.wakes(first.wakeWaiters)
	e.undirected = undirected(e.domain.info)
	e.unmixed = losesDirected(e.provider) && e.directs(OpReceive) && !e.takesAny
	e.registered = registered(e.Info())
	e.singly, e.drains = singly(e.Info()), drains(e.Info())
	e.confirmsEarly = confirmsEarly(e.Info())
	e.forgetsReads = forgetsReads(e.Info())
	if err := e.fetching.begin(e); err != nil {
		return err
	}
	if fetchesOverConnections(e.provider) {
		outliveSenders(e)
	}
	e.sendFlags = e.Info().Send().Flags
	e.spillsEmpty = spillsEmpty(e.Info())
	if (spills(e.Info()) || e.spillsEmpty) && e.shared == nil {
		e.spill = scratch.take()
	}
	e.batch(batches(core(e.provider), LibraryVersion()))
	switch core(e.provider) {
	case "sockets":
		// Contexts have no name.
		if e.connection.part == wholeEndpoint {
			makeRoomForCallers(e)
		}
		if e.scalable != nil {
			e.outlivedBy(e.scalable)
		}
		if e.shared != nil {
			e.outlivedByShared(e.shared)
		}
	case "shm", "efa":
		if hasNeighbours(e.provider) && e.Info().Endpoint() == ReliableDatagram {
			onThisHost.join(e)
		}
	}
	return nil
}

// queue is where operations of a kind complete.
func (e *Endpoint) queue(k OpKind) *CompletionQueue {
	if kinds[k].receive {
		return e.receive
	}
	return e.send
}

// queues are the endpoint's completion queues, each once.
func (e *Endpoint) queues() []*CompletionQueue {
	switch {
	case e.send == nil && e.receive == nil:
		return nil
	case e.send == e.receive || e.receive == nil:
		return []*CompletionQueue{e.send}
	case e.send == nil:
		return []*CompletionQueue{e.receive}
	}
	return []*CompletionQueue{e.send, e.receive}
}

// Name returns the endpoint's own address, for peers to insert, once it is
// enabled; ErrInvalid before. The caller may keep it.
//
// Implements: int fi_getname(...)
func (e *Endpoint) Name() ([]byte, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if e.turn == nil {
		return nil, e.notEnabled("fi_getname")
	}
	if err := e.whole("fi_getname"); err != nil {
		return nil, err
	}
	name, code := e.raw.Name()
	return name, fail("fi_getname", e.provider, int(code))
}

func (e *Endpoint) notEnabled(op string) error {
	return &Error{Op: op, Provider: e.provider, Errno: errnoInvalid, Detail: "the endpoint is not enabled yet"}
}
