package main

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// flood is messages in one direction, as in c/flood.c, but posted in batches:
// all that the window admits go in one turn.
func (s *side) flood() (times, error) {
	if s.first {
		return times{}, s.sendAll()
	}
	return s.receiveAll()
}

// sendAll sends messages numbered from 0, with up to window in flight, and
// waits for the word that all have arrived.
func (s *side) sendAll() error {
	end := s.window
	total, next, completed, ended := s.warmup+s.count, 0, 0, false
	free := make([]int, s.window)
	slots := make([]fabric.Op, s.window)
	for i := range free {
		free[i] = s.window - 1 - i
		slots[i] = s.operation(fabric.OpTaggedSend, i, dataTag)
	}
	if err := s.complete([]fabric.Op{s.operation(fabric.OpTaggedReceive, end, endTag)}, 0, 0); err != nil {
		return err
	}
	if err := s.talk.waitForGo(); err != nil {
		return err
	}
	// What is to be posted, what was refused first. All operations are alike
	// but for buffer and context.
	posts := make([]fabric.Op, 0, s.window)
	for completed < total || !ended {
		for len(free) > 0 && next < total {
			index := free[len(free)-1]
			free = free[:len(free)-1]
			binary.LittleEndian.PutUint64(s.buffer(index), uint64(next))
			posts = append(posts, slots[index])
			next++
		}
		turns := s.spins
		if len(posts) > 0 {
			turns = 0
		}
		n, err := s.port.Turn(posts, s.completions[:], turns)
		if err != nil {
			return err
		}
		if posts, err = keepRefused(posts); err != nil {
			return err
		}
		for i := range s.completions[:n] {
			c := &s.completions[i]
			switch {
			case c.Err != nil:
				return c.Err
			case int(c.Context) == end:
				ended = true
			default:
				free = append(free, int(c.Context))
				completed++
			}
		}
		if n == 0 {
			inFlight := next - completed - len(posts)
			if err := s.idle(inFlight > 0 || next == total && len(posts) == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepRefused moves what is to be offered again to the front.
func keepRefused(posts []fabric.Op) ([]fabric.Op, error) {
	kept := 0
	for i := range posts {
		switch posts[i].Result {
		case fabric.Posted:
		case fabric.Refused:
			if kept != i {
				posts[kept].Buf, posts[kept].Context = posts[i].Buf, posts[i].Context
			}
			kept++
		default:
			return nil, posts[i].Err
		}
	}
	return posts[:kept], nil
}

// receiveAll keeps window receives posted. Messages match receives in the order
// of both, so a receive knows which number it is to get.
func (s *side) receiveAll() (times, error) {
	total, posted, received := s.warmup+s.count, 0, 0
	slots := make([]fabric.Op, s.window)
	expected := make([]uint64, s.window)
	for i := range slots {
		slots[i] = s.operation(fabric.OpTaggedReceive, i, dataTag)
	}
	posts := make([]fabric.Op, 0, s.window)
	repost := func(index int) {
		if posted < total {
			expected[index] = uint64(posted)
			posted++
			posts = append(posts, slots[index])
		}
	}
	for i := range slots {
		repost(i)
	}
	if err := s.complete(posts, 0, 0); err != nil {
		return times{}, err
	}
	posts = posts[:0]
	if err := s.talk.waitForGo(); err != nil {
		return times{}, err
	}
	watch := newStopwatch(s.order, floodPart)
	for received < total {
		n, err := s.port.Turn(posts, s.completions[:], s.spins)
		if err != nil {
			return times{}, err
		}
		if posts, err = keepRefused(posts); err != nil {
			return times{}, err
		}
		for i := range s.completions[:n] {
			c := &s.completions[i]
			index := int(c.Context)
			if c.Err != nil {
				return times{}, c.Err
			}
			if err := expect(s.buffer(index), expected[index]); err != nil {
				return times{}, err
			}
			if c.Len != s.size {
				return times{}, fmt.Errorf("a message of %d bytes instead of %d", c.Len, s.size)
			}
			// The clock starts when the warm-up has arrived.
			if received++; received == watch.next {
				watch.mark()
			}
			repost(index)
		}
		if n == 0 {
			if err := s.idle(len(posts) == 0); err != nil {
				return times{}, err
			}
		}
	}
	result, err := watch.stop(1)
	if err != nil {
		return times{}, err
	}
	return result, s.complete([]fabric.Op{s.operation(fabric.OpTaggedSend, s.window, endTag)}, 1, 0)
}
