package fabric

import (
	"github.com/weft-go/weft/cgo"
)

// EventQueue carries events about endpoints, and errors of the provider that
// belong to no operation (fid_eq). One goroutine at a time may read it.
type EventQueue struct {
	handle
	raw cgo.EventQueue
}

// OpenEventQueue opens an event queue.
func (f *Fabric) OpenEventQueue() (*EventQueue, error) {
	if err := f.enter(); err != nil {
		return nil, err
	}
	defer f.leave()
	raw, code := f.raw.OpenEventQueue(64)
	if code != 0 {
		return nil, fail("fi_eq_open", f.provider, int(code))
	}
	q := &EventQueue{raw: raw}
	q.open("event queue", f.provider, &f.handle)
	return q, nil
}

// Read takes one event and says whether there was one. An error event is
// returned as an *Error.
func (q *EventQueue) Read() (event uint32, ok bool, err error) {
	if err := q.enter(); err != nil {
		return 0, false, err
	}
	defer q.leave()
	ev, ok, code := q.raw.Read()
	switch {
	case code != 0:
		return 0, false, fail("fi_eq_read", q.provider, int(code))
	case ok && ev.Err != 0:
		return ev.Event, true, &Error{Op: "provider", Provider: q.provider, Errno: Errno(ev.Err), Detail: ev.Text}
	}
	return ev.Event, ok, nil
}

// Close closes the queue. ErrBusy says which endpoints still use it.
func (q *EventQueue) Close() error {
	return q.close(func() error { return fail("fi_close of event queue", q.provider, int(q.raw.Close())) })
}
