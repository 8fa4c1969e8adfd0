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

// Endpoint sends and receives (fid_ep). It may be used by one goroutine at a
// time, together with its completion queue and address vector.
type Endpoint struct {
	handle
	raw    cgo.Endpoint
	domain *Domain
	queue  *CompletionQueue
	vector *AddressVector
	events *EventQueue
	turn   *cgo.Turn
}

// OpenEndpoint makes an endpoint of the domain's kind. It can be used after
// Enable.
func (d *Domain) OpenEndpoint() (*Endpoint, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	raw, code := d.raw.OpenEndpoint(d.info.raw)
	if code != 0 {
		return nil, fail("fi_endpoint", d.provider, int(code))
	}
	e := &Endpoint{raw: raw, domain: d}
	e.open("endpoint", d.provider, &d.handle)
	return e, nil
}

// Enable binds the endpoint to its address vector, to its completion queue for
// both directions and to its event queue, and makes it ready. All three must
// be given: without an event queue, the efa provider ends the process on an
// internal error. It can be called once.
//
// Implements: int fi_ep_bind(struct fid_ep *ep, struct fid *bfid, uint64_t flags)
// Implements: int fi_enable(struct fid_ep *ep)
func (e *Endpoint) Enable(v *AddressVector, q *CompletionQueue, ev *EventQueue) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	invalid := func(detail string) error {
		return &Error{Op: "fi_enable", Provider: e.provider, Errno: errnoInvalid, Detail: detail}
	}
	switch {
	case e.turn != nil:
		return invalid("the endpoint is enabled already")
	case v == nil || q == nil || ev == nil:
		return invalid("an endpoint needs an address vector, a completion queue and an event queue")
	case q.domain != e.domain:
		return invalid("the completion queue is of another domain")
	}
	for _, h := range []*handle{&v.handle, &q.handle, &ev.handle} {
		if err := h.enter(); err != nil {
			return err
		}
		defer h.leave()
	}
	if code := e.raw.BindAddressVector(v.raw); code != 0 {
		return fail("fi_ep_bind of address vector", e.provider, int(code))
	}
	e.adopt(&v.handle)
	if code := e.raw.BindEventQueue(ev.raw); code != 0 {
		return fail("fi_ep_bind of event queue", e.provider, int(code))
	}
	e.adopt(&ev.handle)
	if code := e.raw.BindCompletionQueue(q.raw, cgo.BindTransmit|cgo.BindReceive); code != 0 {
		return fail("fi_ep_bind of completion queue", e.provider, int(code))
	}
	e.adopt(&q.handle)
	if code := e.raw.Enable(); code != 0 {
		return fail("fi_enable", e.provider, int(code))
	}
	turn, ok := cgo.NewTurn(e.raw, q.raw, turnOps, turnOps)
	if !ok {
		return fail("turn", e.provider, int(syscall.ENOMEM))
	}
	e.queue, e.vector, e.events, e.turn = q, v, ev, turn
	return nil
}

// Name returns the endpoint's own address, for peers to insert (fi_getname).
func (e *Endpoint) Name() ([]byte, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if e.turn == nil {
		return nil, e.notEnabled("fi_getname")
	}
	name, code := e.raw.Name()
	return name, fail("fi_getname", e.provider, int(code))
}

func (e *Endpoint) notEnabled(op string) error {
	return &Error{Op: op, Provider: e.provider, Errno: errnoInvalid, Detail: "the endpoint is not enabled yet"}
}

// Turn posts operations and reads completions of the endpoint's queue in one
// crossing into C; see [Device] for the contract. Of more than 256 operations
// those beyond are refused. It does not allocate, but for errors.
//
// Implements: ssize_t fi_tsend(...), fi_trecv(...), fi_tinject(...)
// Implements: ssize_t fi_cq_readfrom(...), fi_cq_readerr(...)
func (e *Endpoint) Turn(posts []Op, completions []Completion, spins int) (reaped int, err error) {
	return e.takeTurn(posts, completions, spins, 0)
}

// TurnWait is Turn that, with nothing to read, blocks for up to waitMS
// milliseconds inside the provider (fi_cq_sread). The thread is blocked, not
// only the goroutine; ErrNotSupported says that the provider cannot.
//
// Implements: ssize_t fi_cq_sreadfrom(...)
func (e *Endpoint) TurnWait(posts []Op, completions []Completion, waitMS int) (reaped int, err error) {
	if q := e.queue; q != nil && !q.canBlock {
		return 0, &Error{Op: "fi_cq_sread", Provider: e.provider, Errno: Errno(syscall.ENOSYS), Detail: "the queue has no wait object"}
	}
	return e.takeTurn(posts, completions, 0, waitMS)
}

func (e *Endpoint) takeTurn(posts []Op, completions []Completion, spins, waitMS int) (reaped int, err error) {
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	t, q := e.turn, e.queue
	if t == nil {
		return 0, e.notEnabled("turn")
	}
	n := 0
	for n < len(posts) && n < len(t.Ops) {
		if !e.stage(&posts[n], &t.Ops[n]) {
			break
		}
		n++
	}
	reaped, code := t.Take(n, min(len(completions), len(t.Completions)), spins, waitMS)
	for i := range n {
		e.settle(&posts[i], &t.Ops[i])
	}
	for i := n; i < len(posts); i++ {
		posts[i].Result, posts[i].Err = Refused, nil
	}
	// C has seen the buffers of injects by address only.
	runtime.KeepAlive(posts)
	filled := 0
	for i := range reaped {
		if q.finish(t, &t.Completions[i], &completions[filled]) {
			filled++
		}
	}
	return filled, fail("fi_cq_read", e.provider, int(code))
}

// stage copies an operation to where C reads it, and says whether there was a
// slot for it.
func (e *Endpoint) stage(op *Op, c *cgo.Op) bool {
	c.Peer, c.Tag, c.Ignore = uint64(op.Peer), op.Tag, op.Ignore
	c.Buf, c.Len = uintptr(unsafe.Pointer(unsafe.SliceData(op.Buf))), uint64(len(op.Buf))
	c.Descriptor = uintptr(op.Descriptor)
	switch op.Kind {
	case OpTaggedSend:
		c.Kind = cgo.KindTaggedSend
	case OpTaggedReceive:
		c.Kind = cgo.KindTaggedReceive
	case OpTaggedInject:
		c.Kind, c.Slot, c.Token = cgo.KindTaggedInject, 0, 0
		return true
	default:
		// C answers -FI_EINVAL.
		c.Kind, c.Slot, c.Token = 0, 0, 0
		return true
	}
	if len(e.queue.free) == 0 {
		return false
	}
	index, token := e.queue.take(e, op)
	c.Slot, c.Token = e.queue.slots.Address(int(index)), uint64(token)
	return true
}

// settle tells an operation what became of it, and takes its slot back unless
// libfabric has it.
func (e *Endpoint) settle(op *Op, c *cgo.Op) {
	op.Err = nil
	if c.Result == 0 {
		op.Result, op.Token = Posted, Token(c.Token)
		return
	}
	if c.Slot != 0 {
		e.queue.give(uint32(c.Token))
	}
	if -c.Result == int32(cgo.Again) {
		op.Result = Refused
		return
	}
	op.Result = Failed
	op.Err = fail(op.Kind.String(), e.provider, int(-c.Result))
}

// Cancel asks for the end of an operation in flight; its completion still
// comes. A token whose operation is complete is nothing to cancel, and no error.
func (e *Endpoint) Cancel(token Token) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if e.turn == nil {
		return e.notEnabled("fi_cancel")
	}
	index, s := e.queue.lookup(uint64(token))
	if s == nil || s.endpoint != e {
		return nil
	}
	err := fail("fi_cancel", e.provider, int(e.queue.slots.Cancel(e.raw, int(index))))
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrAgain) {
		// The completion is on its way.
		return nil
	}
	return err
}

// Close closes the endpoint. Operations in flight end without a completion, and
// their buffers are the caller's again on return.
func (e *Endpoint) Close() error {
	return e.close(func() error {
		if err := fail("fi_close of endpoint", e.provider, int(e.raw.Close())); err != nil {
			return err
		}
		if e.turn == nil {
			return nil
		}
		e.turn.Free()
		for i := range e.queue.table {
			if s := &e.queue.table[i]; s.busy && s.endpoint == e {
				// The queue may still hold its completion: the slot is not
				// used again.
				e.queue.retire(uint32(i))
			}
		}
		return nil
	})
}
