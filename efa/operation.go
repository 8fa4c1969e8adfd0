package efa

import (
	"runtime"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// purpose says what an operation is for.
type purpose uint8

const (
	lengthReceive  purpose = iota + 1 // from the shared pool, for any connection
	controlReceive                    // likewise
	payloadReceive
	messageSend // a part of a write
	controlSend
	plainReceive // of a length, for the attached connections of one id
	remoteAccess // a read or a write of a peer's memory
	matchedSend  // of a message that the device matches
	matchedReceive
)

// operation is one thing to post, from being queued until the device lets go of
// its buffer.
type operation struct {
	index   uint32 // its place in the table, and its Context
	purpose purpose
	posted  bool
	kind    fabric.OpKind

	conn *Conn // nil for the shared receives
	id   uint32
	tag  uint64
	// ignore is for receives.
	ignore uint64
	// plain is for a plainReceive.
	plain *plainID

	buf        []byte
	descriptor fabric.Descriptor
	fixed      bool
	buffer     *buffer // to be given back, if buf is in one
	copied     []byte  // likewise, of the shelf
	// registration is of buf alone, where the device needs one.
	registration fabric.Registration
	pinner       runtime.Pinner

	// remote, accessor, flags and immediate are for a remoteAccess; stranded is for
	// an accessor that gave up.
	remote    fabric.Remote
	accessor  Sender
	flags     fabric.OpFlags
	immediate uint32
	stranded  *stranded

	// match is told of the end of a matchedReceive; withdrawn: it is not to be posted.
	match     MatchHandler
	withdrawn bool

	write  *write
	ticket tagged.Ticket
	// group is how many messages are in one length message, the ticket being
	// that of the first; 0 if no more may join.
	group int
	token fabric.Token
	// offset is where a piece that is received belongs in its message; ahead says
	// that it takes of the room for pieces of which an earlier one is on its way.
	offset int
	ahead  bool
	// lane is which device of the connection's it is for: see Conn.lane.
	lane uint8
	// payload is that of a length message with one. It is in no queue, but goes
	// out with its length; announced says that it is on its own since that has
	// been posted.
	payload   *operation
	isPayload bool
	announced bool

	// The connection's list of its operations.
	prev, next *operation
}

// operationTable hands out operations; their index finds them again.
type operationTable struct {
	all  []*operation
	free []*operation
}

func (t *operationTable) take() *operation {
	if n := len(t.free); n > 0 {
		op := t.free[n-1]
		t.free = t.free[:n-1]
		return op
	}
	// In chunks, so that the garbage collector has few objects to look at.
	chunk := make([]operation, 64)
	for i := range chunk {
		op := &chunk[i]
		op.index = uint32(len(t.all))
		t.all = append(t.all, op)
		t.free = append(t.free, op)
	}
	return t.take()
}

func (t *operationTable) give(op *operation) {
	index := op.index
	*op = operation{index: index}
	t.free = append(t.free, op)
}

// operationQueue holds receives of any connection that are to be posted, in order.
type operationQueue struct {
	arbiter tagged.Arbiter[*operation]
	queue   tagged.Queue[*operation]
}

func (q *operationQueue) push(op *operation)    { q.arbiter.Push(&q.queue, op) }
func (q *operationQueue) putBack(op *operation) { q.arbiter.PutBack(&q.queue, op) }
func (q *operationQueue) empty() bool           { return q.arbiter.Empty() }
func (q *operationQueue) length() int           { return q.queue.Len() }

func (q *operationQueue) gather(dst []*operation) int { return q.arbiter.Gather(dst, len(dst)) }

// live ends those of the operations whose connection has failed, and says how many
// are left.
func (r *Reactor) live(dst []*operation) int {
	kept := 0
	for _, op := range dst {
		if op.conn.failure != nil {
			r.ended(op, op.conn.failure)
			continue
		}
		dst[kept] = op
		kept++
	}
	return kept
}

// newOperation makes an operation of a connection; c may be nil.
func (r *Reactor) newOperation(c *Conn, p purpose) *operation {
	op := r.operations.take()
	op.purpose, op.conn = p, c
	if c != nil {
		if op.next = c.operations; op.next != nil {
			op.next.prev = op
		}
		c.operations = op
	}
	return op
}

// freeOperation ends an operation that the device does not hold.
func (r *Reactor) freeOperation(op *operation) {
	if c := op.conn; c != nil {
		if c.gathering == op {
			c.gathering = nil
		}
		if op.prev != nil {
			op.prev.next = op.next
		} else {
			c.operations = op.next
		}
		if op.next != nil {
			op.next.prev = op.prev
		}
	}
	if op.buffer != nil {
		r.buffers.give(op.buffer)
	}
	if op.copied != nil {
		op.conn.copied -= len(op.copied)
		r.shelf.give(op.copied)
	}
	if op.registration != nil {
		r.stats.Crossings++
		if err := op.registration.Close(); err != nil {
			r.log.Warn("weft: closing a registration", "error", err)
		}
		op.pinner.Unpin()
	}
	r.operations.give(op)
}

// lend gives an operation memory of the program's. Its lane is known.
func (r *Reactor) lend(op *operation, buf []byte) error {
	op.buf = buf
	if !r.attributes.NeedsRegistration || len(buf) == 0 {
		return nil
	}
	op.pinner.Pin(&buf[0])
	r.stats.Crossings++
	registration, err := r.deviceOf(op).Register(buf)
	if err != nil {
		op.pinner.Unpin()
		return err
	}
	op.registration, op.descriptor, op.fixed = registration, registration.Descriptor(), true
	return nil
}

// fill gives an operation one of the reactor's own buffers, with room for n
// bytes.
func (r *Reactor) fill(op *operation, n int) error {
	b, err := r.buffers.take(n)
	if err != nil {
		return err
	}
	op.buffer, op.buf, op.descriptor, op.fixed = b, b.data[:n], b.descriptor, true
	return nil
}
