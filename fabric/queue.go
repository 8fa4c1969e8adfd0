package fabric

import (
	"runtime"
	"strconv"
	"syscall"

	"github.com/weft-go/weft/cgo"
)

// CompletionQueue is where operations end (fid_cq), and the owner of their
// contexts: it has as many slots for operations in flight as it has entries, so
// that it cannot overrun. It may be used by one goroutine at a time.
type CompletionQueue struct {
	handle
	raw    cgo.CompletionQueue
	domain *Domain
	waitFD int
	// canBlock: it has a wait object. Without one shm crashes in fi_cq_sread,
	// and with the only one it makes it never comes back, whatever the timeout.
	canBlock bool

	slots cgo.Slots
	table []slot
	free  []uint32
	stray uint64
}

// slot is weft's half of an operation in flight; libfabric's is in cgo.Slots.
type slot struct {
	context    uint64
	endpoint   *Endpoint
	generation uint32
	kind       OpKind
	busy       bool
	pinned     bool
	pinner     runtime.Pinner
}

// OpenCompletionQueue opens a queue with at least size entries. It has a wait
// descriptor where the provider can make one.
func (d *Domain) OpenCompletionQueue(size int) (*CompletionQueue, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	const most = 1 << 20
	if size < 1 || size > most {
		return nil, &Error{
			Op: "fi_cq_open", Provider: d.provider, Errno: errnoInvalid,
			Detail: "a queue has 1 to " + strconv.Itoa(most) + " entries, not " + strconv.Itoa(size),
		}
	}
	q := &CompletionQueue{domain: d, waitFD: -1}
	raw, actual, code := d.raw.OpenCompletionQueue(size, cgo.WaitFD)
	if code == 0 {
		q.canBlock = true
		if fd, code := raw.WaitDescriptor(); code == 0 {
			q.waitFD = fd
		}
	} else {
		raw, actual, code = d.raw.OpenCompletionQueue(size, cgo.WaitNone)
	}
	if code != 0 {
		return nil, fail("fi_cq_open", d.provider, int(code))
	}
	// A provider may make more entries than asked for, but not fewer.
	actual = min(max(actual, size), most)
	slots, ok := cgo.NewSlots(actual)
	if !ok {
		raw.Close()
		return nil, fail("slots", d.provider, int(syscall.ENOMEM))
	}
	q.raw, q.slots = raw, slots
	q.table = make([]slot, actual)
	q.free = make([]uint32, actual)
	for i := range q.free {
		q.free[i] = uint32(actual - 1 - i)
	}
	q.open("completion queue", d.provider, &d.handle)
	return q, nil
}

// WaitDescriptor returns the file descriptor that becomes readable when there
// may be completions, or -1. It belongs to the queue. Before blocking on it,
// TryWait must have said that it is safe.
func (q *CompletionQueue) WaitDescriptor() int { return q.waitFD }

// TryWait says whether blocking on the wait descriptor is safe; if not, there
// is something to read (fi_trywait).
func (q *CompletionQueue) TryWait() (bool, error) {
	if err := q.enter(); err != nil {
		return false, err
	}
	defer q.leave()
	switch code := q.domain.fabric.raw.TryWait(q.raw); code {
	case 0:
		return true, nil
	case cgo.Again:
		return false, nil
	default:
		return false, fail("fi_trywait", q.provider, int(code))
	}
}

// Size is the number of entries, and so of operations that can be in flight.
func (q *CompletionQueue) Size() int { return len(q.table) }

// InFlight is the number of operations whose completion is still to come.
func (q *CompletionQueue) InFlight() int { return len(q.table) - len(q.free) }

// Strays is the number of completions that belonged to no operation in flight.
func (q *CompletionQueue) Strays() uint64 { return q.stray }

// Close closes the queue. ErrBusy says which endpoints still use it.
func (q *CompletionQueue) Close() error {
	return q.close(func() error {
		if err := fail("fi_close of completion queue", q.provider, int(q.raw.Close())); err != nil {
			return err
		}
		q.slots.Free()
		return nil
	})
}

// take gives an operation a slot; the caller has seen that one is free.
func (q *CompletionQueue) take(e *Endpoint, op *Op) (uint32, Token) {
	index := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	s := &q.table[index]
	s.context, s.kind, s.endpoint, s.busy = op.Context, op.Kind, e, true
	if len(op.Buf) > 0 && !op.Fixed {
		s.pinner.Pin(&op.Buf[0])
		s.pinned = true
	}
	return index, Token(uint64(s.generation)<<32 | uint64(index))
}

// give takes the slot back, and makes its tokens void.
func (q *CompletionQueue) give(index uint32) {
	q.retire(index)
	q.free = append(q.free, index)
}

// retire ends an operation without making its slot free for another.
func (q *CompletionQueue) retire(index uint32) {
	s := &q.table[index]
	if s.pinned {
		s.pinner.Unpin()
		s.pinned = false
	}
	s.busy, s.endpoint = false, nil
	s.generation++
}

// lookup returns the slot of a token whose operation is in flight.
func (q *CompletionQueue) lookup(t uint64) (uint32, *slot) {
	index, generation := uint32(t), uint32(t>>32)
	if uint64(index) >= uint64(len(q.table)) {
		return 0, nil
	}
	s := &q.table[index]
	if !s.busy || s.generation != generation {
		return 0, nil
	}
	return index, s
}

// finish turns what C read into a Completion, and says whether it belongs to an
// operation in flight.
func (q *CompletionQueue) finish(t *cgo.Turn, c *cgo.Completion, out *Completion) bool {
	index, s := q.lookup(c.Token)
	if s == nil {
		q.stray++
		return false
	}
	out.Context, out.Kind = s.context, s.kind
	out.Tag, out.Len, out.Source, out.Err = 0, 0, AddressAny, nil
	if s.kind == OpTaggedReceive {
		out.Tag, out.Len, out.Source = c.Tag, int(c.Len), Address(c.Source)
	}
	if c.Err != 0 {
		out.Err = &Error{
			Op: s.kind.String(), Provider: q.provider, Errno: Errno(c.Err),
			Detail: t.ErrorText(c), Excess: int(c.Excess),
		}
	}
	q.give(index)
	return true
}

func (k OpKind) String() string {
	switch k {
	case OpTaggedSend:
		return "tagged send"
	case OpTaggedReceive:
		return "tagged receive"
	case OpTaggedInject:
		return "tagged inject"
	}
	return "operation of unknown kind " + strconv.Itoa(int(k))
}
