package comm

import (
	"context"
	"sync/atomic"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/tagged"
)

// operation is a send, a receive or a probe, from its begin until its end was seen.
// But for what is set before it begins, and read after it is done, it belongs to the
// progress role.
type operation struct {
	engine *engine
	comm   *Comm
	task   efa.Task
	// served counts the requests that were waited for, so that one tells whether it is its
	// own still, and requested says that it serves one.
	served    atomic.Uint64
	requested bool
	// idle: the program has given up a wait for it.
	idle bool
	work work
	done atomic.Bool
	// waiting: the task has to be finished. blocking: somebody waits for it since its begin.
	waiting, blocking bool
	err               error
	status            Status
	any               *anyOf // a WaitAny that it is in

	buf     []byte
	context uint32
	peer    *peer // where it goes, or where its message comes from
	tag     uint64
	// Of a send: synchronous waits for the match, matched and free say that it was
	// found, and that buf is the caller's.
	synchronous, matched, free bool

	// Of a receive or a probe.
	pattern tagged.Pattern
	limit   int // the length of the whole buffer
	ticket  tagged.ReceiveTicket[*operation]
	slot    efa.MatchReceive // while the provider has it
	ending  error            // why it is to end when the provider lets go of it
	claim   bool             // a probe that takes the message out
	claimed *arrival         // by such a probe
	// Of a rendezvous: exposure is of buf; reading counts the reads under way, offset
	// is how much there were reads for, and opening what is read.
	exposure *efa.Exposure
	reading  int
	offset   int
	opening  header
	// failed is the first error of a read, or why a send ends that the device has still.
	failed error
	// inDevice: the device has buf, or is to.
	inDevice bool
	released chan struct{} // for who gave up while it had

	// Its place in a table, if it has one, and in a list.
	place      int
	list       *operationList
	prev, next *operation
}

// work is what an operation does when it begins.
type work uint8

const (
	workNone work = iota // it has begun before, and is waited for again
	workSend
	workReceive
	workProbe
)

func (e *engine) newOperation(c *Comm, w work) *operation {
	op := e.pool.Get().(*operation)
	op.comm, op.work = c, w
	return op
}

// release gives an operation that is done, and of which nothing is with a device,
// back.
func (op *operation) release() {
	if op.requested {
		op.requested = false
		// Before done: see Request.Cancel.
		op.served.Add(1)
	}
	op.comm, op.buf, op.peer, op.claimed, op.err, op.any = nil, nil, nil, nil, nil, nil
	op.idle = false
	op.reading, op.offset, op.failed = 0, 0, nil
	op.synchronous, op.matched, op.free, op.claim = false, false, false, false
	op.status = Status{}
	op.done.Store(false)
	op.engine.pool.Put(op)
}

// Start implements efa.Work.
func (op *operation) Start(p efa.Progress) {
	op.waiting = true
	w := op.work
	op.work = workNone
	switch {
	case w == workNone:
		if op.done.Load() {
			op.wake(p)
		}
	case op.engine.closed:
		op.complete(p, errClosed)
	case w == workSend:
		op.send(p)
	case w == workReceive:
		op.receive(p)
	default:
		op.probe(p)
	}
}

// Abandon implements efa.Work: the wait ends, and the operation goes on.
func (op *operation) Abandon(p efa.Progress, why error) {
	if op.waiting {
		op.waiting = false
		p.Finish(&op.task, why)
	}
}

// complete ends an operation, once.
func (op *operation) complete(p efa.Progress, err error) {
	op.err = err
	op.inDevice = false
	if op.released != nil {
		close(op.released)
		op.released = nil
	}
	op.done.Store(true)
	op.wake(p)
}

func (op *operation) wake(p efa.Progress) {
	if a := op.any; a != nil {
		a.notice(p)
	}
	if op.waiting {
		// Whoever waits may give the operation back from here on.
		op.waiting = false
		p.Finish(&op.task, nil)
	}
}

// begin has the operation begin, and does not wait.
func (op *operation) begin() {
	op.blocking = false
	op.engine.reactor.Begin(&op.task, op)
}

// run has the operation begin, and waits for its end: the only error is that ctx
// has ended before.
func (op *operation) run(ctx context.Context) error {
	op.blocking = true
	return op.engine.reactor.Run(ctx, &op.task, op)
}

// rankError is the error for the loss of the operation's peer.
func (op *operation) rankError() error {
	return &RankError{Rank: op.comm.rankOf(op.peer.rank), Cause: op.peer.failure}
}

// operationTable gives operations that wait for an answer the ids that peers answer
// to: a place, and how often it was taken.
type operationTable struct {
	all   []*operation
	taken []uint32
	free  []int
}

// take gives an operation an id, which is not 0.
func (t *operationTable) take(op *operation) uint64 {
	if n := len(t.free); n > 0 {
		op.place = t.free[n-1]
		t.free = t.free[:n-1]
		t.all[op.place] = op
	} else {
		op.place = len(t.all)
		t.all = append(t.all, op)
		t.taken = append(t.taken, 0)
	}
	t.taken[op.place]++
	return uint64(t.taken[op.place])<<32 | uint64(op.place+1)
}

// find returns the operation with an id that a peer has named, or nil.
func (t *operationTable) find(id uint64, from *peer) *operation {
	place := int(uint32(id)) - 1
	if place < 0 || place >= len(t.all) || t.taken[place] != uint32(id>>32) {
		return nil
	}
	if op := t.all[place]; op != nil && op.peer == from {
		return op
	}
	return nil
}

func (t *operationTable) give(op *operation) {
	if op.place < len(t.all) && t.all[op.place] == op {
		t.all[op.place] = nil
		t.free = append(t.free, op.place)
	}
}

// live are the operations in the table.
func (t *operationTable) live() []*operation {
	var live []*operation
	for _, op := range t.all {
		if op != nil {
			live = append(live, op)
		}
	}
	return live
}

// operationList is a list of operations, each of which is in one at most.
type operationList struct{ head, tail *operation }

func (l *operationList) push(op *operation) {
	op.list = l
	if op.prev = l.tail; op.prev != nil {
		op.prev.next = op
	} else {
		l.head = op
	}
	l.tail = op
}

// leaveList takes an operation out of its list, if it is in one.
func (op *operation) leaveList() {
	l := op.list
	if l == nil {
		return
	}
	if op.prev != nil {
		op.prev.next = op.next
	} else {
		l.head = op.next
	}
	if op.next != nil {
		op.next.prev = op.prev
	} else {
		l.tail = op.prev
	}
	op.list, op.prev, op.next = nil, nil, nil
}
