package comm

import (
	"context"

	"github.com/weft-go/weft/efa"
)

// Probe waits until there is a message that Recv would take, and returns its status.
// The message stays. Errors are those of Recv.
func (c *Comm) Probe(ctx context.Context, source, tag int) (Status, error) {
	op, err := c.newProbe(source, tag, false)
	if err != nil {
		return Status{}, err
	}
	return op.runToEnd(ctx)
}

// Iprobe says whether there is a message that Recv would take at once, and its status.
func (c *Comm) Iprobe(source, tag int) (status Status, found bool, err error) {
	pattern, err := c.pattern(source, tag)
	if err != nil {
		return status, false, err
	}
	e := c.engine
	e.bringUp()
	e.do(func(efa.Progress) {
		if e.closed {
			err = errClosed
			return
		}
		m, ok := e.matcher.Probe(pattern)
		if found = ok; found {
			status = c.statusOf(m.Value)
			return
		}
		err = c.lostOf(pattern)
	})
	return status, found, err
}

// Message is one that Mprobe has found: it is out of the reach of other receives. It must be
// received, by one goroutine: until then its sender may wait, and its memory counts in
// Config.MaxUnexpected; Close of a communicator that is not the world does not drop it. A
// second Recv or Irecv is an *ArgumentError.
type Message struct {
	Status
	op *operation
}

// Mprobe waits for a message that Recv would take, and takes it out: only Recv of
// the Message receives it. Errors are those of Recv.
func (c *Comm) Mprobe(ctx context.Context, source, tag int) (*Message, error) {
	op, err := c.newProbe(source, tag, true)
	if err != nil {
		return nil, err
	}
	if op.run(ctx) != nil {
		// It has found one just then, or has ended with this.
		c.engine.do(func(p efa.Progress) { op.cancel(p, context.Cause(ctx)) })
	}
	if op.err != nil {
		_, err := op.result()
		return nil, err
	}
	return &Message{Status: op.status, op: op}, nil
}

// Improbe is Mprobe without waiting: nil if there is no such message now.
func (c *Comm) Improbe(source, tag int) (*Message, error) {
	pattern, err := c.pattern(source, tag)
	if err != nil {
		return nil, err
	}
	e := c.engine
	e.bringUp()
	var m *Message
	e.do(func(efa.Progress) {
		if e.closed {
			err = errClosed
			return
		}
		found, ok := e.matcher.Take(pattern)
		if !ok {
			err = c.lostOf(pattern)
			return
		}
		op := e.newOperation(c, workNone)
		op.claimed, op.status = found.Value, c.statusOf(found.Value)
		m = &Message{Status: op.status, op: op}
	})
	return m, err
}

// Recv receives the message, once. Errors are those of Comm.Recv. If ctx has ended
// already, the message can be received later.
func (m *Message) Recv(ctx context.Context, buf []byte) (Status, error) {
	if err := context.Cause(ctx); err != nil {
		return Status{}, err
	}
	op, err := m.take(buf)
	if err != nil {
		return Status{}, err
	}
	// It is out of the matcher: even if ctx ends just now, it has to be received.
	return op.runOut(ctx)
}

// Irecv begins a Recv and returns: buf belongs to the request until it is done.
func (m *Message) Irecv(buf []byte) (Request, error) {
	op, err := m.take(buf)
	return op.start(), err
}

func (m *Message) take(buf []byte) (*operation, error) {
	op := m.op
	if op == nil {
		return nil, &ArgumentError{"message received for the time", 2, "1"}
	}
	m.op = nil
	op.done.Store(false)
	op.work, op.buf = workReceive, buf
	return op, nil
}

func (c *Comm) newProbe(source, tag int, claim bool) (*operation, error) {
	pattern, err := c.pattern(source, tag)
	if err != nil {
		return nil, err
	}
	op := c.engine.newOperation(c, workProbe)
	op.pattern, op.claim = pattern, claim
	return op, nil
}

// probe begins a probe.
func (op *operation) probe(p efa.Progress) {
	e := op.engine
	if op.look(p) {
		return
	}
	if err := op.comm.lostOf(op.pattern); err != nil {
		op.complete(p, err)
		return
	}
	e.probes.push(op)
	if e.provider != nil {
		e.provider.steer(p)
	}
}

// look says whether there is what a probe looks for.
func (op *operation) look(p efa.Progress) bool {
	e := op.engine
	find := e.matcher.Probe
	if op.claim {
		find = e.matcher.Take
	}
	m, ok := find(op.pattern)
	if !ok {
		return false
	}
	if op.status = op.comm.statusOf(m.Value); op.claim {
		op.claimed = m.Value
	}
	op.leaveList()
	op.complete(p, nil)
	return true
}

// tellProbes has the probes that wait look at what has come.
func (e *engine) tellProbes(p efa.Progress) {
	for op := e.probes.head; op != nil; {
		next := op.next
		op.look(p)
		op = next
	}
}

func (c *Comm) statusOf(a *arrival) Status {
	return Status{Source: c.rankOf(a.peer.rank), Tag: int(a.header.tag), Length: a.length}
}
