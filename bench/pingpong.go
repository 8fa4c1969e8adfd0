package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// pingPong has one message each way in flight, as in c/pingpong.c. The answer
// to a message is its number, inverted. One turn posts a message and, behind
// it, the receive of the next one.
func (s *side) pingPong() (times, error) {
	const sending, receiving = 0, 1
	send := fabric.OpTaggedSend
	sends := 1
	if s.inject {
		send, sends = fabric.OpTaggedInject, 0
	}
	posts := []fabric.Op{
		s.operation(send, sending, dataTag),
		s.operation(fabric.OpTaggedReceive, receiving, dataTag),
	}
	out, in := s.buffer(sending), s.buffer(receiving)
	total := s.warmup + s.count
	if !s.first {
		if err := s.complete(posts[1:], 0, 0); err != nil {
			return times{}, err
		}
	}
	if err := s.talk.waitForGo(); err != nil {
		return times{}, err
	}
	if !s.first {
		if err := s.complete(nil, 0, 1); err != nil {
			return times{}, err
		}
		for i := range total {
			if err := expect(in, uint64(i)); err != nil {
				return times{}, err
			}
			binary.LittleEndian.PutUint64(out, ^uint64(i))
			receives := 1
			if i == total-1 {
				receives = 0
			}
			if err := s.complete(posts[:1+receives], sends, receives); err != nil {
				return times{}, err
			}
		}
		return times{}, nil
	}
	watch := newStopwatch(s.order, pingPongPart)
	for i := range total {
		if i == watch.next {
			watch.mark()
		}
		binary.LittleEndian.PutUint64(out, uint64(i))
		if err := s.complete(posts, sends, 1); err != nil {
			return times{}, err
		}
		if err := expect(in, ^uint64(i)); err != nil {
			return times{}, err
		}
	}
	if total == watch.next {
		watch.mark()
	}
	return watch.stop(2)
}

// complete posts the operations and returns when so many sends and receives,
// posted now or before, are complete.
func (s *side) complete(posts []fabric.Op, sends, receives int) error {
	for len(posts) > 0 || sends > 0 || receives > 0 {
		// With nothing to come, a turn posts and does not wait.
		turns := s.spins
		if sends+receives == 0 {
			turns = 0
		}
		n, err := s.port.Turn(posts, s.completions[:], turns)
		if err != nil {
			return err
		}
		if posts, err = refused(posts); err != nil {
			return err
		}
		for i := range s.completions[:n] {
			c := &s.completions[i]
			switch {
			case c.Err != nil:
				return c.Err
			case c.Kind != fabric.OpTaggedReceive:
				sends--
			case c.Len == s.size:
				receives--
			default:
				return fmt.Errorf("a message of %d bytes instead of %d", c.Len, s.size)
			}
		}
		if sends < 0 || receives < 0 {
			return errors.New("a completion too many")
		}
		if n == 0 {
			if err := s.idle(len(posts) == 0 && sends+receives > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// refused returns what is to be offered again, as its own slice, because the
// caller uses his again as it is.
func refused(posts []fabric.Op) ([]fabric.Op, error) {
	var again []fabric.Op
	for i := range posts {
		switch posts[i].Result {
		case fabric.Posted:
		case fabric.Refused:
			again = append(again, posts[i])
		default:
			return nil, posts[i].Err
		}
	}
	return again, nil
}

// expect compares the number of a message with the one that is due.
func expect(message []byte, number uint64) error {
	if got := binary.LittleEndian.Uint64(message); got != number {
		return fmt.Errorf("message %#x instead of %#x", got, number)
	}
	return nil
}
