package fabric

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-go/weft/cgo"
)

// EventQueue carries events about endpoints, and errors of the provider that
// belong to no operation (fid_eq). Any goroutine may use it at any time; each
// event goes to one of those that read. Some providers, tcp among them, take a
// connection from step to step only while the queue is read.
//
// Anybody who can send to an endpoint of efa can bring about an error in its queue. At most
// 1024 of those wait to be read; Dropped counts the others.
type EventQueue struct {
	handle
	raw    cgo.EventQueue
	fabric *Fabric
	waitFD int
	// closing is the number of calls of Close under way: those that wait stand
	// back.
	closing atomic.Int32

	lock   sync.Mutex
	buffer cgo.EventBuffer
	// owners are the objects that events can be about, by identity.
	owners map[uintptr]eventOwner
	// pending was read before anybody asked for it; see drain.
	pending []pendingEvent
}

// mostUnreadErrors is how many errors may wait on efa.
const mostUnreadErrors = 1024

// eventOwner is what an event can be about.
type eventOwner interface{ closed() bool }

type pendingEvent struct {
	owner eventOwner // nil: none that is known
	event Event
	err   error
}

// OpenEventQueue opens an event queue. It has a wait descriptor where the
// provider can make one.
//
// Implements: int fi_eq_open(...)
func (f *Fabric) OpenEventQueue() (*EventQueue, error) {
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer f.leave()
	const size = 64
	var raw cgo.EventQueue
	var code cgo.Code
	q := &EventQueue{fabric: f, waitFD: -1, owners: make(map[uintptr]eventOwner)}
	for _, want := range []struct {
		wait  int
		flags uint64
	}{
		{cgo.WaitFD, cgo.FlagWriteEvents},
		{cgo.WaitUnspecified, cgo.FlagWriteEvents},
		{cgo.WaitNone, cgo.FlagWriteEvents},
		{cgo.WaitNone, 0},
	} {
		if raw, code = f.raw.OpenEventQueue(size, want.wait, want.flags); code == 0 {
			if want.wait == cgo.WaitFD {
				if fd, code := raw.WaitDescriptor(); code == 0 {
					q.waitFD = fd
				}
			}
			break
		}
	}
	if code != 0 {
		return nil, fail("fi_eq_open", f.provider, int(code))
	}
	if core(f.provider) == "efa" {
		if code := raw.Bound(mostUnreadErrors); code != 0 {
			raw.Close()
			return nil, fail("fi_eq_open", f.provider, int(code))
		}
	}
	q.raw = raw
	q.open("event queue", f.provider, &f.handle)
	return q, nil
}

// Read takes one event and says whether there was one. An error event comes as
// an error with ok true: a *ConnectionError if it is about an endpoint, else an
// *Error, of which syscall.EACCES says that a peer asked for memory that it may not
// have (efa). With ok false, the error is about reading. It does not block, and does
// not allocate where there is nothing.
//
// Implements: ssize_t fi_eq_read(...), fi_eq_readerr(...)
func (q *EventQueue) Read() (event Event, ok bool, err error) {
	if err := q.enter(); err != nil {
		return nil, false, err
	}
	defer q.leave()
	q.lock.Lock()
	defer q.lock.Unlock()
	for {
		var p pendingEvent
		if len(q.pending) > 0 {
			p = q.pending[0]
			q.pending = q.pending[1:]
		} else if p, ok, err = q.next(); !ok || err != nil {
			return nil, false, err
		}
		if !p.stale() {
			return p.event, true, p.err
		}
	}
}

// stale says that an event is about something that is no more.
func (p pendingEvent) stale() bool {
	if r, ok := p.event.(*ConnectionRequest); ok {
		return !r.pending()
	}
	return p.owner != nil && p.owner.closed()
}

// eventSlice bounds how long a wait keeps others from closing the queue.
const eventSlice = 20 * time.Millisecond

// ReadWait is Read that waits for an event until the context is done, whose
// cause it then returns. An error event is an error here too. The thread is blocked
// meanwhile, in slices: Close of the queue ends the wait with net.ErrClosed.
//
// Implements: ssize_t fi_eq_sread(...)
func (q *EventQueue) ReadWait(ctx context.Context) (Event, error) {
	for {
		for q.closing.Load() > 0 && !q.closed() {
			time.Sleep(time.Millisecond)
		}
		event, ok, err := q.Read()
		if ok || err != nil {
			return event, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		slice := eventSlice
		if deadline, ok := ctx.Deadline(); ok {
			slice = max(min(slice, time.Until(deadline)), time.Millisecond)
		}
		if err := q.wait(slice); err != nil {
			return nil, err
		}
	}
}

func (q *EventQueue) wait(slice time.Duration) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	switch code := q.raw.Wait(int(slice.Milliseconds())); code {
	case 0:
		return nil
	case cgo.NoSystem:
		// Nothing to block on: look again soon.
		time.Sleep(min(slice, time.Millisecond))
		return nil
	default:
		return fail("fi_eq_sread", q.provider, int(code))
	}
}

// Write puts a NotifyEvent into the queue, which ends a ReadWait.
// ErrNotSupported or ErrInvalid says that the provider's queues cannot.
//
// Implements: ssize_t fi_eq_write(...)
func (q *EventQueue) Write(event NotifyEvent) error {
	if err := q.enter(); err != nil {
		return err
	}
	defer q.leave()
	return fail("fi_eq_write", q.provider, int(q.raw.Notify(event.Data)))
}

// WaitDescriptor returns the file descriptor that becomes readable when there
// may be events, or -1, as after Close. It belongs to the queue. Before blocking on it, TryWait
// must have said that it is safe.
//
// Implements: int fi_control(...)
func (q *EventQueue) WaitDescriptor() int {
	if q.number == 0 || q.closed() {
		return -1
	}
	return q.waitFD
}

// TryWait says whether blocking on the wait descriptor is safe; if not, there
// is something to read.
//
// Implements: int fi_trywait(...)
func (q *EventQueue) TryWait() (bool, error) {
	if err := q.enter(); err != nil {
		return false, err
	}
	defer q.leave()
	q.lock.Lock()
	waiting := len(q.pending) > 0
	q.lock.Unlock()
	if waiting {
		return false, nil
	}
	return mayBlock(q.provider, q.fabric.raw.TryWaitEvents(q.raw))
}

// next reads one event of libfabric's. The caller has the lock.
func (q *EventQueue) next() (p pendingEvent, ok bool, err error) {
	b := &q.buffer
	ok, code := q.raw.Read(b)
	if code != 0 || !ok {
		return p, false, fail("fi_eq_read", q.provider, int(code))
	}
	p.owner = q.owners[b.Object()]
	endpoint, _ := p.owner.(*Endpoint)
	group, _ := p.owner.(*Group)
	if b.Err() != 0 {
		e := &Error{Op: "event", Provider: q.provider, Errno: failedAs(q.provider, Errno(b.Err()), b.ProviderErrno()), Detail: b.Text()}
		if saysForbidden(e, b.ProviderErrno()) {
			e.Errno, e.Detail = Errno(syscall.EACCES), forbidden
		}
		p.err = e
		if group != nil {
			group.settle(e)
		}
		if endpoint != nil {
			endpoint.connection.failed(e)
			endpoint.connection.end()
			p.err = &ConnectionError{Endpoint: endpoint, Data: b.Bytes(), Err: e}
		}
		return p, true, nil
	}
	switch b.Kind() {
	case cgo.EventRequest:
		passive, _ := p.owner.(*PassiveEndpoint)
		info, has := b.Info()
		if !has {
			p.event = UnknownEvent{Kind: b.Kind()}
			break
		}
		p.event = passive.request(newInfo(info), b.Bytes())
	case cgo.EventConnected:
		if endpoint != nil {
			endpoint.connection.begin()
		}
		p.event = ConnectedEvent{Endpoint: endpoint, Data: b.Bytes()}
	case cgo.EventShutdown:
		if endpoint != nil {
			endpoint.connection.end()
		}
		p.event = ShutdownEvent{Endpoint: endpoint}
	case cgo.EventNotify:
		p.event = NotifyEvent{Data: b.Data()}
	case cgo.EventAddresses:
		p.event = AVCompleteEvent{Count: b.Data()}
	case cgo.EventRegion:
		p.event = MRCompleteEvent{Data: b.Data()}
	case cgo.EventJoined:
		multicast, _ := p.owner.(*MulticastGroup)
		if group != nil {
			group.settle(nil)
		}
		p.event = JoinCompleteEvent{Group: group, Multicast: multicast, Data: b.Data()}
	default:
		p.event = UnknownEvent{Kind: b.Kind(), Data: b.Data()}
	}
	return p, true, nil
}

// drain takes what libfabric has, so that it is known what is about whom. The
// caller has the lock.
func (q *EventQueue) drain() {
	// Bounded: a queue that never ends must not stop the program.
	for range 1 << 16 {
		p, ok, err := q.next()
		if !ok || err != nil {
			return
		}
		if !p.stale() {
			q.pending = append(q.pending, p)
		}
	}
}

// Dropped is how many errors were dropped because 1024 others had not been read (efa). It is 0
// after Close.
func (q *EventQueue) Dropped() uint64 {
	if q.enter() != nil {
		return 0
	}
	defer q.leave()
	return q.raw.Dropped()
}

// attach makes an object known that events will be about. libfabric names
// objects by their place in memory, which it may use again at once: whatever is
// there for an earlier object at the same place is read first.
func (q *EventQueue) attach(identity uintptr, owner eventOwner) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.drain()
	q.forgetClosed()
	q.owners[identity] = owner
}

func (q *EventQueue) forgetClosed() {
	for id, o := range q.owners {
		if o.closed() {
			delete(q.owners, id)
		}
	}
}

// Close closes the queue, and ends a ReadWait. ErrBusy says which endpoints, and
// which domain, still use it.
//
// Implements: int fi_close(...)
func (q *EventQueue) Close() error {
	q.closing.Add(1)
	defer q.closing.Add(-1)
	return q.close(func() error { return fail("fi_close of event queue", q.provider, int(q.raw.Close())) })
}
