package tagged

import (
	"errors"
	"fmt"
)

// Ticket names a write in a [WriteDeque]. Tickets count upwards from 1 and are
// never reused; the zero Ticket names none.
type Ticket uint64

// WriteDeque holds writes in posting order. Each is finished by a number of
// completions, which arrive in any order; only the finished front is released,
// so that callbacks run in the order of writing.
//
// The zero WriteDeque is empty and ready. It is used by one goroutine at a
// time. Its memory grows with the number of writes in it, which is for the
// caller to bound (with [SendCredit]), and is reused after that.
type WriteDeque[T any] struct {
	slots ring[writeSlot[T]]
	front uint64 // ticket of the front, less one
	next  uint64 // ticket of the next Push, less one
}

type writeSlot[T any] struct {
	value T
	err   error
	parts int // completions still to come
}

// Push adds a write at the back that is finished by that many completions: 2
// for a length and a payload message, 1 for a length message alone. With none
// to come (parts is 0 or less, as where all was injected) it is finished at
// once.
func (d *WriteDeque[T]) Push(value T, parts int) Ticket {
	d.slots.grow(d.front, d.Len()+1)
	*d.slots.at(d.next) = writeSlot[T]{value: value, parts: max(parts, 0)}
	d.next++
	return Ticket(d.next)
}

// Complete counts one completion of a write. err is that of the completion: the
// first that is not nil becomes the write's. A write with an error is not
// finished before its other completions, since the device may still hold its
// buffer.
//
// A ticket of no write in the deque, or of one that is finished, changes
// nothing and is reported as a *TicketError.
func (d *WriteDeque[T]) Complete(ticket Ticket, err error) error {
	s := d.slot(ticket)
	if s == nil {
		return &TicketError{Ticket: ticket}
	}
	if s.parts == 0 {
		return &TicketError{Ticket: ticket, Finished: true}
	}
	s.parts--
	if s.err == nil {
		s.err = err
	}
	return nil
}

// Pop removes the front if it is finished, and returns it and its error. ok is
// false if there is no finished front.
func (d *WriteDeque[T]) Pop() (value T, err error, ok bool) {
	if d.Len() == 0 {
		return value, nil, false
	}
	s := d.slots.at(d.front)
	if s.parts > 0 {
		return value, nil, false
	}
	value, err = s.value, s.err
	*s = writeSlot[T]{}
	d.front++
	return value, err, true
}

// Len is the number of writes in the deque, finished or not.
func (d *WriteDeque[T]) Len() int { return int(d.next - d.front) }

// Value gives access to a write in the deque; ok is false if there is none with
// this ticket. The pointer holds until the next Push or Pop.
func (d *WriteDeque[T]) Value(ticket Ticket) (value *T, ok bool) {
	s := d.slot(ticket)
	if s == nil {
		return nil, false
	}
	return &s.value, true
}

// Abandon finishes every unfinished write with err, unless an earlier error is
// known, so that all can be popped in order. It is for the end of a connection,
// when the device holds none of the buffers any more and no completion will
// come. err must not be nil: an unfinished write did not succeed.
func (d *WriteDeque[T]) Abandon(err error) {
	if err == nil {
		err = errAbandoned
	}
	for sequence := d.front; sequence != d.next; sequence++ {
		s := d.slots.at(sequence)
		if s.parts == 0 {
			continue
		}
		s.parts = 0
		if s.err == nil {
			s.err = err
		}
	}
}

func (d *WriteDeque[T]) slot(ticket Ticket) *writeSlot[T] {
	sequence := uint64(ticket) - 1
	if sequence-d.front >= d.next-d.front {
		return nil
	}
	return d.slots.at(sequence)
}

var errAbandoned = errors.New("tagged: write abandoned")

// TicketError is about a completion that belongs to no unfinished write.
type TicketError struct {
	Ticket Ticket
	// Finished says that the write is there and needs no more completions.
	// Otherwise the ticket was never given out, or its write was popped.
	Finished bool
}

func (e *TicketError) Error() string {
	if e.Finished {
		return fmt.Sprintf("tagged: one completion too many for the write with ticket %d", e.Ticket)
	}
	return fmt.Sprintf("tagged: completion for ticket %d, of which no write is in progress", e.Ticket)
}
