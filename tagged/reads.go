package tagged

import "fmt"

// MaxWindow is the largest window of a [ReadDeque].
const MaxWindow = 1 << 30

// ReadDeque restores the order of messages at the reading side. Lengths arrive
// in any order, each with its message id; payloads are complete in any order;
// messages are popped in the order of their ids, which wrap at 2^32.
//
// A ReadDeque is used by one goroutine at a time. It holds no more messages
// than its window, whatever the peer sends, and its memory grows with those
// that have been there at once, up to the window.
type ReadDeque[T any] struct {
	slots   ring[readSlot[T]]
	next    uint32
	window  uint32
	arrived int
}

type readSlot[T any] struct {
	value T
	err   error
	state readState
}

type readState uint8

const (
	readAbsent readState = iota
	readArrived
	readFinished
)

// NewReadDeque returns a deque whose first message has the id first. Ids from
// the next one to be popped up to window-1 beyond it may arrive. A window below
// 1 is taken as 1, and one above MaxWindow as MaxWindow.
func NewReadDeque[T any](first uint32, window int) *ReadDeque[T] {
	return &ReadDeque[T]{next: first, window: uint32(min(max(window, 1), MaxWindow))}
}

// Arrive notes that the length of the message with this id has arrived. The
// pointer gives access to the value until the next Arrive or Pop. An id outside
// of the window, or one that has arrived already, is a *SequenceError and
// changes nothing.
func (d *ReadDeque[T]) Arrive(id uint32, value T) (*T, error) {
	offset := id - d.next
	if offset >= d.window {
		return nil, d.sequenceError(SequenceOutside, id)
	}
	d.slots.grow(uint64(d.next), int(offset)+1)
	s := d.slots.at(uint64(id))
	if s.state != readAbsent {
		return nil, d.sequenceError(SequenceDuplicate, id)
	}
	*s = readSlot[T]{value: value, state: readArrived}
	d.arrived++
	return &s.value, nil
}

// Finish notes that the message with this id is complete, with the error of its
// payload or nil. An id that has not arrived, or that is finished, is a
// *SequenceError and changes nothing.
func (d *ReadDeque[T]) Finish(id uint32, err error) error {
	s := d.slot(id)
	if s == nil {
		return d.sequenceError(SequenceAbsent, id)
	}
	if s.state == readFinished {
		return d.sequenceError(SequenceFinished, id)
	}
	s.state, s.err = readFinished, err
	return nil
}

// Get gives access to a message that has arrived and is not popped; ok is false
// if there is none with this id. The pointer holds until the next Arrive or
// Pop.
func (d *ReadDeque[T]) Get(id uint32) (value *T, ok bool) {
	s := d.slot(id)
	if s == nil {
		return nil, false
	}
	return &s.value, true
}

// Front is the next message to be popped. value is nil until it has arrived and
// holds until the next Arrive or Pop; err is that of Finish.
func (d *ReadDeque[T]) Front() (id uint32, value *T, arrived, finished bool, err error) {
	s := d.slot(d.next)
	if s == nil {
		return d.next, nil, false, false, nil
	}
	return d.next, &s.value, true, s.state == readFinished, s.err
}

// Pop removes the front if it is finished, and returns it and its error. ok is
// false if there is no finished front.
func (d *ReadDeque[T]) Pop() (value T, err error, ok bool) {
	s := d.slot(d.next)
	if s == nil || s.state != readFinished {
		return value, nil, false
	}
	value, err = s.value, s.err
	*s = readSlot[T]{}
	d.next++
	d.arrived--
	return value, err, true
}

// Len is the number of messages that have arrived and are not popped, those
// beyond a gap included.
func (d *ReadDeque[T]) Len() int { return d.arrived }

// Next is the id of the next message to be popped.
func (d *ReadDeque[T]) Next() uint32 { return d.next }

// Drop removes every message that has arrived, finished or not, in order of
// their ids and across gaps, and calls f with each. It is for the end of a
// connection, when the device holds none of the buffers any more. f must not
// use the deque. Next does not change.
func (d *ReadDeque[T]) Drop(f func(id uint32, value T)) {
	for id := d.next; d.arrived > 0; id++ {
		s := d.slots.at(uint64(id))
		if s.state == readAbsent {
			continue
		}
		value := s.value
		*s = readSlot[T]{}
		d.arrived--
		f(id, value)
	}
}

// slot returns the slot of a message that has arrived, or nil.
func (d *ReadDeque[T]) slot(id uint32) *readSlot[T] {
	if uint64(id-d.next) >= uint64(len(d.slots)) {
		return nil
	}
	s := d.slots.at(uint64(id))
	if s.state == readAbsent {
		return nil
	}
	return s
}

func (d *ReadDeque[T]) sequenceError(problem SequenceProblem, id uint32) error {
	return &SequenceError{Problem: problem, ID: id, Next: d.next, Window: int(d.window)}
}

// SequenceProblem says what is wrong with a message id.
type SequenceProblem uint8

// What can be wrong with a message id.
const (
	SequenceOutside   SequenceProblem = iota + 1 // popped already, or too far ahead
	SequenceDuplicate                            // has arrived already
	SequenceAbsent                               // finished without having arrived
	SequenceFinished                             // finished twice
)

// SequenceError is about a message id that cannot be right.
type SequenceError struct {
	Problem SequenceProblem
	ID      uint32
	// Ids from Next on could have been right, Window of them.
	Next   uint32
	Window int
}

func (e *SequenceError) Error() string {
	switch e.Problem {
	case SequenceDuplicate:
		return fmt.Sprintf("tagged: message id %d arrived twice", e.ID)
	case SequenceAbsent:
		return fmt.Sprintf("tagged: message id %d finished, but has not arrived", e.ID)
	case SequenceFinished:
		return fmt.Sprintf("tagged: message id %d finished twice", e.ID)
	default:
		return fmt.Sprintf("tagged: message id %d arrived, want %d to %d",
			e.ID, e.Next, e.Next+uint32(e.Window)-1)
	}
}
