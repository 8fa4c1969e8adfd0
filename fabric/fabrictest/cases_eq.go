package fabrictest

import (
	"context"
	"time"

	"github.com/weft-go/weft/fabric"
)

var eventCases = []named{
	{"empty", emptyEventQueue},
	{"write and read", writtenEvents},
	{"many readers", manyEventReaders},
	{"of the domain", eventsOfDomain},
}

// Endpoints without an event queue work with that of their domain.
func eventsOfDomain(t *trial) {
	info := t.discover(t.hints(fabric.ReliableDatagram, fabric.TaggedMessages))
	s := &site{info: info}
	var err error
	s.fabric, err = info.OpenFabric()
	noError(t, err)
	closeAtEnd(t, s.fabric)
	q, err := s.fabric.OpenEventQueue()
	noError(t, err)
	closeAtEnd(t, q)
	s.domain, err = s.fabric.OpenDomain(info)
	noError(t, err)
	closeAtEnd(t, s.domain)
	closeKeptAtEnd(t, s)
	t.need("events of domains", s.domain.BindEvents(q, 0))
	a, b := s.pair(t, nil, nil)
	a.say(t, 1, "without a queue")
	b.hears(t, fabric.Op{Tag: 1}, "without a queue")
	errorIs(t, q.Close(), fabric.ErrBusy)
	idle(t, a, b)
}

// eventQueue opens one on whatever endpoint the provider has.
func eventQueue(t *trial) *fabric.EventQueue {
	t.Helper()
	f, err := t.discover(t.hints(0, 0)).OpenFabric()
	noError(t, err)
	closeAtEnd(t, f)
	q, err := f.OpenEventQueue()
	t.need("event queues", err)
	closeAtEnd(t, q)
	return q
}

// An empty queue has nothing, and a wait for it ends with its context.
func emptyEventQueue(t *trial) {
	q := eventQueue(t)
	event, ok, err := q.Read()
	noError(t, err)
	isTrue(t, !ok && event == nil, "an event: %v", event)
	_, err = q.ReadWait(within(t, 30*time.Millisecond))
	errorIs(t, err, context.DeadlineExceeded)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = q.ReadWait(ended)
	errorIs(t, err, context.Canceled)
}

// What is written is read, in order, and the wait descriptor says that it is
// there.
func writtenEvents(t *trial) {
	q := eventQueue(t)
	const count = 20
	for i := range count {
		noError(t, q.Write(fabric.NotifyEvent{Data: uint64(i)}))
	}
	if q.WaitDescriptor() >= 0 {
		safe, err := q.TryWait()
		noError(t, err)
		if safe {
			readable(t, q.WaitDescriptor())
		}
	}
	for i := range count {
		event, ok, err := q.Read()
		noError(t, err)
		isTrue(t, ok, "event %d is missing", i)
		equal[fabric.Event](t, fabric.NotifyEvent{Data: uint64(i)}, event)
	}
	_, ok, err := q.Read()
	noError(t, err)
	isTrue(t, !ok, "an event too many")
}

// Each event ends one wait, and goes to one of those who wait.
func manyEventReaders(t *trial) {
	q := eventQueue(t)
	ctx := t.soon()
	const count = 50
	got := make(chan uint64)
	for range 2 {
		go func() {
			for {
				event, err := q.ReadWait(ctx)
				if err != nil {
					return
				}
				select {
				case got <- event.(fabric.NotifyEvent).Data:
				case <-ctx.Done():
				}
			}
		}()
	}
	seen := make(map[uint64]bool)
	for i := range uint64(count) {
		noError(t, q.Write(fabric.NotifyEvent{Data: i}))
	}
	for range count {
		select {
		case n := <-got:
			isTrue(t, !seen[n], "%d twice", n)
			seen[n] = true
		case <-ctx.Done():
			t.Fatalf("%d of %d events", len(seen), count)
		}
	}
}
