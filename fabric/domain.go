package fabric

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// Domain is an open interface or device (fid_domain). Its methods may be called
// from any goroutine. But if the hints said OneThread, it may be used by one
// goroutine at a time, together with everything that was opened in it.
type Domain struct {
	handle
	fabric    *Fabric
	info      *Info
	raw       cgo.Domain
	reach     cgo.Reach // of efa, as is the next
	lingering lingering
	// excluding is held by whoever keeps people out of several handles, one of which another may have.
	excluding sync.Mutex
	keys      atomic.Uint64

	// events is the queue of BindEvents, which binding guards.
	binding sync.Mutex
	events  *EventQueue

	deferred    domainDeferred
	inUse       domainUse
	descriptors descriptorTable
	ofDevices   atomic.Bool // memory of devices was registered
}

// OpenDomain opens the domain that the info names. What is opened in it is as the
// info has it: the type of endpoints, the memory mode and so on. ErrInvalid says that
// there is no info.
//
// Implements: int fi_domain(...)
func (f *Fabric) OpenDomain(i *Info) (*Domain, error) {
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer f.leave()
	if err := i.there("fi_domain"); err != nil {
		return nil, err
	}
	if detail := i.foreign(f.provider); detail != "" {
		return nil, f.invalid("fi_domain", detail)
	}
	setup.Lock()
	raw, code := f.raw.OpenDomain(i.raw)
	setup.Unlock()
	if code != 0 {
		return nil, fail("fi_domain", i.Provider(), int(code))
	}
	if fetchesOverConnections(i.Provider()) {
		markMessages(raw)
	}
	reach, ok := openReach(i)
	if !ok {
		inTurn(raw.Close)
		return nil, fail("fi_domain", i.Provider(), int(syscall.ENOMEM))
	}
	d := &Domain{fabric: f, info: i, raw: raw, reach: reach}
	d.open("domain", i.Provider(), &f.handle)
	endedArenas.opened(d)
	return d, nil
}

// DomainEvents says what the event queue of a domain is to have beyond the events
// of its endpoints, a set of bits.
type DomainEvents uint64

// RegistrationEvents has every registration of memory in the domain end with an
// [MRCompleteEvent], before which it must not be used (FI_REG_MR). Of the providers
// here only sockets has it, whose registrations are done on return all the same.
const RegistrationEvents DomainEvents = DomainEvents(cgo.FlagRegistrations)

// BindEvents makes q the event queue of all endpoints of the domain that are
// enabled later without one in their Bindings: events of their connections and
// errors of theirs go there. The queue must be of the domain's fabric, and cannot
// be closed before the domain. It can be called once for a domain, by any
// goroutine. ErrInvalid says what does not fit, and ErrNotSupported that the
// provider's domains have no event queue: then each endpoint needs one.
//
// Implements: int fi_domain_bind(...)
func (d *Domain) BindEvents(q *EventQueue, more DomainEvents) error {
	const op = "fi_domain_bind"
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	d.binding.Lock()
	defer d.binding.Unlock()
	switch {
	case q == nil:
		return d.invalid(op, "no event queue")
	case q.fabric != d.fabric:
		return d.invalid(op, "the event queue is of another fabric")
	case d.events != nil:
		return d.invalid(op, "the domain has an event queue already")
	case more&^RegistrationEvents != 0:
		return d.invalid(op, "there are no such events of domains")
	}
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	code := d.raw.BindEventQueue(q.raw, uint64(more))
	if Errno(code) == errnoBadFlags {
		return &Error{Op: op, Provider: d.provider, Errno: Errno(syscall.EOPNOTSUPP), Detail: "the provider has no events of registrations"}
	}
	if code != 0 {
		return fail(op, d.provider, int(code))
	}
	d.adopt(&q.handle)
	d.events = q
	return nil
}

// eventQueue is the one of BindEvents, or nil.
func (d *Domain) eventQueue() *EventQueue {
	d.binding.Lock()
	defer d.binding.Unlock()
	return d.events
}

// Close closes the domain. ErrBusy says what is still open in it.
//
// Implements: int fi_close(...)
func (d *Domain) Close() error {
	err := d.close(func() error {
		d.lingering.end()
		if fetchesOverConnections(d.provider) {
			// What is left then is found by fi_close.
			d.raw.CloseRegistrations()
		}
		if err := fail("fi_close of domain", d.provider, int(inTurn(d.raw.Close))); err != nil {
			return err
		}
		d.deferred.release()
		if d.reach != (cgo.Reach{}) {
			d.reach.Free()
		}
		endedArenas.closed(d)
		return nil
	})
	return errors.Join(err, onThisHost.endAll(d))
}
