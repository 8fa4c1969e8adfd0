package fabric

import (
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// SharedSend is a send context that endpoints share (fid_stx): they use one
// queue of the device. Sends are posted to the endpoints. Any goroutine may use
// it.
type SharedSend struct {
	handle
	raw    cgo.SharedTransmit
	domain *Domain
}

// trustSockets is for tests without traffic.
var trustSockets = false

// OpenSharedSend opens a send context to be shared by endpoints of the info's
// kind. Those are opened with an info whose number of send contexts is
// [SharedContext], and have it in their Bindings. ErrNotSupported says that the
// provider has none, or none that works: that of sockets, up to libfabric 1.17
// at least, may end the process when a peer disconnects.
//
// Implements: int fi_stx_context(...)
func (d *Domain) OpenSharedSend(i *Info) (*SharedSend, error) {
	const op = "fi_stx_context"
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := i.there(op); err != nil {
		return nil, err
	}
	if detail := i.foreign(d.provider); detail != "" {
		return nil, d.invalid(op, detail)
	}
	if err := sharable(op, i, i.Limits().SharedSends); err != nil {
		return nil, err
	}
	if core(i.Provider()) == "sockets" && !trustSockets {
		return nil, &Error{
			Op: op, Provider: i.Provider(), Errno: Errno(syscall.ENOSYS),
			Detail: "the shared send contexts of sockets may end the process when a peer disconnects",
		}
	}
	raw, code := d.raw.OpenSharedTransmit(i.raw)
	if code != 0 {
		return nil, fail(op, d.provider, int(code))
	}
	s := &SharedSend{raw: raw, domain: d}
	s.open("shared send context", d.provider, &d.handle)
	return s, nil
}

// Cancel says ErrNotSupported: receives of a shared context end with it. Of the
// providers that have such contexts, tcp crashes when it is asked, and sockets
// drops the receive without a completion.
func (s *SharedReceive) Cancel(Token) error {
	if err := s.part().enter(); err != nil {
		return err
	}
	defer s.part().leave()
	return &Error{
		Op: "fi_cancel", Provider: s.part().provider, Errno: Errno(syscall.ENOSYS),
		Detail: "receives of a shared context cannot be cancelled one by one",
	}
}

// sharable refuses what a provider does not say it has. shm would make a context
// to share that cannot be closed.
func sharable(op string, i *Info, most uint64) error {
	if most > 0 {
		return nil
	}
	return &Error{Op: op, Provider: i.Provider(), Errno: Errno(syscall.ENOSYS), Detail: "endpoints of this kind do not share such contexts"}
}

// Close closes the context. ErrBusy says which endpoints still use it.
//
// Implements: int fi_close(...)
func (s *SharedSend) Close() error {
	return s.close(func() error { return fail("fi_close of shared send context", s.provider, int(s.raw.Close())) })
}

// SharedReceive is a receive context that endpoints share (fi_srx_context): what
// any of them receives goes into the buffers that were posted here, and
// completes on one queue. Receives are posted by Turn, by one goroutine at a
// time, together with the queue and its endpoints. It is enabled from the beginning. Endpoints
// of accepted connections can have one if the info of their passive endpoint is with
// [SharedContext] (Info.WithContexts), and those of others if theirs is.
type SharedReceive struct {
	Context
}

// Close closes the context. ErrBusy says which endpoints still use it.
//
// Implements: int fi_close(...)
func (s *SharedReceive) Close() error {
	if err := s.part().Close(); err != nil {
		return err
	}
	return s.part().endSharers(0)
}

// OpenSharedReceive opens a receive context to be shared by endpoints of the
// info's kind. Those are opened with an info whose number of receive contexts is
// [SharedContext], and have it in their Bindings, with q for Receive. It is
// ready at once. q cannot be closed before it. ErrNotSupported says that such
// endpoints cannot share.
//
// Implements: int fi_srx_context(...)
func (d *Domain) OpenSharedReceive(i *Info, q *CompletionQueue) (*SharedReceive, error) {
	const op = "fi_srx_context"
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := i.there(op); err != nil {
		return nil, err
	}
	if detail := i.foreign(d.provider); detail != "" {
		return nil, d.invalid(op, detail)
	}
	if q == nil || q.domain != d {
		return nil, d.invalid(op, "it needs a completion queue of the domain")
	}
	if err := sharable(op, i, i.Limits().SharedReceives); err != nil {
		return nil, err
	}
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.leave()
	raw, code := d.raw.OpenSharedReceive(i.raw)
	if code != 0 {
		return nil, fail(op, d.provider, int(code))
	}
	turn, ok := q.newTurn(raw, opsOf(q))
	if !ok {
		raw.Close()
		return nil, fail("turn", d.provider, int(syscall.ENOMEM))
	}
	c := newContext(raw, d, i, sharedReceive, "shared receive context", &d.handle)
	c.endpoint.adopt(&q.handle)
	c.endpoint.receive, c.endpoint.turn = q, turn
	c.endpoint.wakes(q.wakeWaiters)
	c.endpoint.singly, c.endpoint.drains = singly(i), drains(i)
	c.endpoint.spillsEmpty = spillsEmpty(i)
	if spills(i) || c.endpoint.spillsEmpty {
		c.endpoint.spill = scratch.take()
	}
	if core(d.provider) == "sockets" {
		c.endpoint.unreceived.Unreceived, c.endpoint.unreceivedKnown = cgo.UnreceivedOf(raw)
	}
	return &SharedReceive{*c}, nil
}
