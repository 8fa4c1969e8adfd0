package fabric

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/weft-go/weft/cgo"
)

// turnOps is the most operations that one crossing carries.
const turnOps = 256

// Endpoint sends and receives (fid_ep). It is opened, enabled with what it works
// with, and then posts and reads by Turn. It may be used by one goroutine at a
// time, together with its completion queues and address vector.
type Endpoint struct {
	handle
	raw    cgo.Endpoint
	domain *Domain
	turn   *cgo.Turn // nil until the endpoint is enabled
	// Where operations complete: often one queue for both directions. An
	// endpoint may also have one for one direction only.
	send    *CompletionQueue
	receive *CompletionQueue

	pace       pace
	batching   bool
	undirected bool // untagged receives take messages of anybody
	registered bool // what is not registered ends the process
	connection connection
	groups     []*Group
	joins      int // of groups, ever
	neighbour  neighbour
	abandoned  bool // its operations were given up
	severed    bool // closed in libfabric only
	awaited    bool // something was deferred that has to do with it
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
// called once. EnableWith is the general form.
//
// Implements: int fi_ep_bind(...), fi_enable(...)
func (e *Endpoint) Enable(v *AddressVector, q *CompletionQueue, ev *EventQueue) error {
	return e.EnableWith(Bindings{Vector: v, Send: q, Receive: q, Events: ev})
}

// activate is the end of enabling: everything is bound. send and receive are the
// queues of the two directions; one of them may be nil.
func (e *Endpoint) activate(send, receive *CompletionQueue) error {
	if code := e.raw.Enable(); code != 0 {
		return fail("fi_enable", e.provider, int(code))
	}
	first := send
	if first == nil {
		first = receive
	}
	turn, ok := cgo.NewTurn(e.raw, first.raw, turnOps, turnOps, e.domain.info.Capabilities()&SourceAddress != 0)
	if !ok {
		return fail("turn", e.provider, int(syscall.ENOMEM))
	}
	e.send, e.receive, e.turn = send, receive, turn
	e.undirected = undirected(e.domain.info)
	e.registered = registered(e.Info())
	e.batch(batches(core(e.provider), LibraryVersion()))
	switch core(e.provider) {
	case "sockets":
		// Contexts have no name.
		if e.connection.part == wholeEndpoint {
			makeRoomForCallers(e)
		}
	case "shm":
		onThisHost.join(e)
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

// Name returns the endpoint's own address, for peers to insert, once it is
// enabled. The caller may keep it.
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

// Turn tries to post every operation of posts, in order, and then reads up to
// len(completions) completions of the endpoint's queue, in one crossing into C,
// or in two if it has two queues. It does not block, and does not allocate, but
// for errors.
//
// It sets Result, and where it applies Token and Err, of each operation. After
// one that was refused the later ones of the same peer and direction are refused
// untried, so that order is kept. The caller offers them again; of more than 256
// those beyond are refused too. posts is the caller's again on return, and a
// buffer is when the completion with its Context has been returned, or on return
// if it was injected.
//
// While there is nothing to read, it looks up to spins more times, where fewer than
// 0 is 0. reaped is the number of completions filled in, of which some may be of
// other endpoints with the same queue, and 256 are the most; 0 is normal. With no
// completions to fill in nothing is read, and on most providers nothing moves. err is
// about the endpoint or its queue as a whole, never about one operation.
//
// Implements: ssize_t fi_send(...), fi_recv(...), fi_inject(...), fi_tsend(...), fi_trecv(...), fi_tinject(...)
//
// Implements: ssize_t fi_read(...), fi_write(...), fi_inject_write(...)
//
// Implements: ssize_t fi_atomic(...), fi_inject_atomic(...), fi_fetch_atomic(...), fi_compare_atomic(...)
//
// Implements: ssize_t fi_cq_read(...), fi_cq_readfrom(...), fi_cq_readerr(...)
func (e *Endpoint) Turn(posts []Op, completions []Completion, spins int) (reaped int, err error) {
	return e.takeTurn(posts, completions, spins, 0)
}

// TurnWait is Turn that, with nothing to read, blocks for up to waitMS
// milliseconds inside the provider, where fewer than 0 is 0. The thread is blocked,
// not only the goroutine, and Close waits for it; [CompletionQueue.Signal] ends it early.
// ErrNotSupported says that the provider cannot block. With two queues, it blocks
// in that of sends.
//
// Implements: ssize_t fi_cq_sread(...), fi_cq_sreadfrom(...)
func (e *Endpoint) TurnWait(posts []Op, completions []Completion, waitMS int) (reaped int, err error) {
	for _, q := range []*CompletionQueue{e.send, e.receive} {
		if q != nil {
			if err := q.blocks(); err != nil {
				return 0, err
			}
		}
	}
	return e.takeTurn(posts, completions, 0, waitMS)
}

func (e *Endpoint) takeTurn(posts []Op, completions []Completion, spins, waitMS int) (reaped int, err error) {
	if err := e.enter(); err != nil {
		return 0, failAll(posts, err)
	}
	t := e.turn
	if t == nil {
		e.leave()
		return 0, failAll(posts, e.notEnabled("turn"))
	}
	e.pace.step()
	first, second := e.send, e.receive
	if first == nil {
		first, second = second, nil
	}
	n := 0
	for n < len(posts) && n < len(t.Ops) {
		if !e.stage(&posts[n], &t.Ops[n], &t.Extras[n]) {
			break
		}
		n++
	}
	reaped, err = first.reap(t, n, completions, spins, waitMS)
	for i := range n {
		e.settle(&posts[i], &t.Ops[i])
	}
	for i := n; i < len(posts); i++ {
		posts[i].Result, posts[i].Err = Refused, nil
	}
	if v := e.neighbour.vector; reaped > 0 && v != nil && len(v.newcomers.names) > 0 {
		v.newcomers.look(reaped)
	}
	// C has seen the buffers of injects by address only.
	runtime.KeepAlive(posts)
	if second != nil && second != first && reaped < len(completions) {
		more, failure := second.reap(second.reader, 0, completions[reaped:], 0, 0)
		reaped += more
		if err == nil {
			err = failure
		}
	}
	// Not deferred, which would cost as much as an operation.
	e.leave()
	return reaped, err
}

// failAll says of operations that were not tried why, and not what the last
// Turn said of those that were in the same place.
func failAll(posts []Op, err error) error {
	for i := range posts {
		posts[i].Result, posts[i].Token, posts[i].Err = Failed, 0, err
	}
	return err
}

// stage copies an operation to where C reads it, and says whether there was a
// slot for it. What cannot be right is left for settle to fail.
func (e *Endpoint) stage(op *Op, c *cgo.Op, x *cgo.Extra) bool {
	c.Kind, c.Slot, c.Token, c.Extra = 0, 0, 0, nil
	// The usual case first: a plain message needs no look at the rest.
	plain := op.plain()
	if (!plain || op.Kind == 0) && (op.wrong() != "" || e.emptyTooMuch(op) != "") {
		return true
	}
	if e.undirected && op.Kind == OpReceive && op.Peer != AddressAny {
		return true
	}
	if e.registered && op.unregistered() {
		return true
	}
	kind := &kinds[op.Kind]
	if e.connection.restricted.Load() {
		if errno, _ := e.connection.refuses(e, kind.receive); errno != 0 {
			return true
		}
	}
	c.Peer, c.Tag, c.Ignore = uint64(op.Peer), op.Tag, op.Ignore
	c.Buf, c.Len = address(op.Buf), uint64(len(op.Buf))
	c.Descriptor = uintptr(op.Descriptor)
	if !plain {
		extend(op, c, x)
	}
	if !kind.inject {
		q := e.queue(op.Kind)
		if q == nil {
			return true
		}
		if op.Flags&(Claim|Peek) == Claim {
			index, ok := q.claim(e, op)
			if !ok {
				return true
			}
			c.Slot, c.Token = q.slots.Address(int(index)), uint64(op.Claimed)
		} else {
			if len(q.free) == 0 {
				return false
			}
			index, token := q.take(e, op)
			c.Slot, c.Token = q.slots.Address(int(index)), uint64(token)
		}
	}
	c.Kind = kind.code
	return true
}

// undirected says of endpoints that untagged receives do not look at the peer
// that they name: tcp's own, from libfabric 1.18 on, although they say that they
// can.
func undirected(i *Info) bool {
	return i.Provider() == "tcp" && i.Endpoint() == ReliableDatagram && i.Capabilities()&DirectedReceive != 0
}

// emptyTooMuch says why an operation with nothing in it is not for the provider,
// or nothing.
func (e *Endpoint) emptyTooMuch(op *Op) string {
	why := ""
	switch op.Kind {
	case OpSend, OpTaggedSend, OpWrite:
		if op.Flags&DeliveryComplete != 0 && olderThanTwo && core(e.provider) == "shm" {
			why = "an empty operation with DeliveryComplete never completes on shm of libfabric 1.x"
		}
	case OpRead:
		if core(e.provider) == "efa" {
			why = "the process dies of an empty read on efa"
		}
	}
	if why == "" || len(op.Buf) > 0 {
		return ""
	}
	for _, b := range op.Vector {
		if len(b) > 0 {
			return ""
		}
	}
	return why
}

var olderThanTwo = LibraryVersion().Major == 1

// extend fills in what an operation has beyond a buffer, a peer and a tag.
func extend(op *Op, c *cgo.Op, x *cgo.Extra) {
	c.Extra = x
	x.Flags, x.Data = uint64(op.Flags), op.Immediate
	x.RemoteAddress, x.RemoteKey = op.Remote.Address, op.Remote.Key
	x.Vectors = uint64(len(op.Vector))
	for i, b := range op.Vector {
		x.Vector[i] = cgo.Vector{Base: address(b), Len: uint64(len(b))}
		x.Descriptor[i] = 0
		if i < len(op.Descriptors) {
			x.Descriptor[i] = uintptr(op.Descriptors[i])
		}
	}
	if a := op.Atomic; a != nil {
		c.Len = uint64(a.values(op))
		for i := range op.Vector {
			x.Vector[i].Len /= uint64(a.Type.Size())
		}
		x.Datatype, x.Atomic = uint32(a.Type), uint32(a.Operation)
		x.Compare, x.CompareDescriptor = address(a.Compare), uintptr(a.CompareDescriptor)
		x.Result, x.ResultDescriptor = address(a.Result), uintptr(a.ResultDescriptor)
		if a.Operation == AtomicRead && c.Buf == 0 && x.Vectors == 0 {
			// It has nothing to send, but the efa provider (1.17) copies it
			// all the same.
			c.Buf = x.Result
		}
	}
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// settle tells an operation what became of it, and takes its slot back unless
// libfabric has it.
func (e *Endpoint) settle(op *Op, c *cgo.Op) {
	op.Err = nil
	if c.Result == 0 {
		op.Result, op.Token = Posted, Token(c.Token)
		if c.Slot != 0 && e.send != e.receive && kinds[op.Kind].receive {
			op.Token |= receiveToken
		}
		return
	}
	if c.Slot != 0 {
		q := e.queue(op.Kind)
		if op.Flags&(Claim|Peek) == Claim && -c.Result == int32(cgo.Again) {
			q.unclaim(uint32(c.Token))
		} else {
			q.give(uint32(c.Token))
		}
	}
	if -c.Result == int32(cgo.Again) {
		op.Result = Refused
		return
	}
	op.Result = Failed
	errno, detail := Errno(-c.Result), ""
	if c.Kind == 0 {
		errno, detail = e.wrong(op)
	}
	op.Err = &Error{Op: op.Kind.String(), Provider: e.provider, Errno: errno, Detail: detail}
}

// wrong says why an operation was not even tried.
func (e *Endpoint) wrong(op *Op) (Errno, string) {
	if why := op.wrong(); why != "" {
		return errnoInvalid, why
	}
	if why := e.emptyTooMuch(op); why != "" {
		return Errno(syscall.ENOSYS), why
	}
	if e.undirected && op.Kind == OpReceive && op.Peer != AddressAny {
		return Errno(syscall.ENOSYS), "an untagged receive takes messages of any peer here; receive by a tag, or from AddressAny"
	}
	if e.registered && op.unregistered() {
		return errnoInvalid, "a buffer here must be registered, and have its descriptor with it"
	}
	if errno, why := e.connection.refuses(e, kinds[op.Kind].receive); errno != 0 {
		return errno, why
	}
	if e.queue(op.Kind) == nil {
		return errnoInvalid, "the endpoint has no completion queue for this direction"
	}
	if op.Flags&(Claim|Peek) != Claim {
		return errnoInvalid, "the endpoint was not connected"
	}
	return errnoInvalid, "there is no claimed message with this token"
}

// Cancel asks for the end of an operation in flight. Its completion still comes,
// with ErrCanceled or as if nothing had happened, and only then its buffer is the
// caller's. A token whose operation is complete is nothing to cancel, and no
// error. It does not allocate, but for errors.
//
// Implements: int fi_cancel(...)
func (e *Endpoint) Cancel(token Token) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if e.turn == nil {
		return e.notEnabled("fi_cancel")
	}
	if e.severed {
		// Everything has ended.
		return nil
	}
	q := e.send
	if token&receiveToken != 0 || q == nil {
		q = e.receive
	}
	index, s := q.lookup(uint64(token &^ receiveToken))
	if s == nil || s.endpoint != e || s.claimed {
		return nil
	}
	code := q.slots.Cancel(e.raw, int(index))
	if errors.Is(Errno(code), ErrNotFound) || errors.Is(Errno(code), ErrAgain) {
		// The completion is on its way.
		return nil
	}
	return fail("fi_cancel", e.provider, int(code))
}

// Close closes the endpoint, and its groups for collectives. ErrBusy says what is
// still open on it. Operations in flight end without a completion, and their
// buffers are the caller's again on return; their places in the completion queue
// are not used again, because it may still hold something about them.
// On shm, some of it is put off: an endpoint that another of this process has
// inserted stays open inside until that one is closed or removes it.
//
// Implements: int fi_close(...)
func (e *Endpoint) Close() error {
	err := e.close(func() error {
		if err := e.endGroups(false); err != nil {
			return err
		}
		if err := fail("fi_close of endpoint", e.provider, int(e.closeRaw())); err != nil {
			return err
		}
		if err := e.endGroups(true); err != nil {
			return err
		}
		if r := e.connection.request; r != nil {
			r.ended(e)
		}
		if e.turn == nil {
			return nil
		}
		e.turn.Free()
		if !e.abandoned {
			e.abandon()
		}
		return nil
	})
	return errors.Join(err, onThisHost.endAll(e.domain))
}

// giveUp is abandon for an endpoint that stays open inside: what it would still
// receive must not come into buffers that are the caller's.
func (e *Endpoint) giveUp() {
	for _, q := range e.queues() {
		for i := range q.table {
			if s := &q.table[i]; s.busy && s.endpoint == e && kinds[s.kind].receive {
				q.slots.Cancel(e.raw, i)
			}
		}
	}
	e.abandon()
}

// abandon gives the operations in flight up.
func (e *Endpoint) abandon() {
	e.abandoned = true
	for _, q := range e.queues() {
		for i := range q.table {
			if s := &q.table[i]; s.busy && s.endpoint == e {
				// The queue may still hold its completion: the slot is not
				// used again.
				q.retire(uint32(i))
			}
		}
	}
}

// queues are the endpoint's completion queues, each once.
func (e *Endpoint) queues() []*CompletionQueue {
	switch {
	case e.send == e.receive || e.receive == nil:
		return []*CompletionQueue{e.send}
	case e.send == nil:
		return []*CompletionQueue{e.receive}
	}
	return []*CompletionQueue{e.send, e.receive}
}
