package suite

import (
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
			putNumber(s.buffer(index), uint64(next))
			posts = append(posts, slots[index])
			next++
		}
		turns := s.spins
		if len(posts) > 0 {
			turns = 0
		}
		done, err := s.turn(posts, turns)
		if err != nil {
			return err
		}
		if posts, err = keepRefused(posts); err != nil {
			return err
		}
		for i := range done {
			if index := int(done[i].Context); index == end {
				ended = true
			} else {
				free = append(free, index)
				completed++
			}
		}
		if len(done) == 0 {
			inFlight := next - completed - len(posts)
			if err := s.idle(inFlight > 0 || next == total && len(posts) == 0); err != nil {
				return err
			}
		}
	}
	return nil
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
	watch := newStopwatch(s.order, s.floodPart())
	for received < total {
		done, err := s.turn(posts, s.spins)
		if err != nil {
			return times{}, err
		}
		if posts, err = keepRefused(posts); err != nil {
			return times{}, err
		}
		for i := range done {
			c := &done[i]
			index := int(c.Context)
			if err := expectNumber(s.buffer(index), expected[index]); err != nil {
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
		if len(done) == 0 {
			if err := s.idle(len(posts) == 0); err != nil {
				return times{}, err
			}
		}
	}
	return s.endFlood(watch)
}

// endFlood stops the clock of the side that has had everything, and tells the other.
func (s *side) endFlood(watch *stopwatch) (times, error) {
	result, err := watch.stop(1)
	if err != nil {
		return times{}, err
	}
	return result, s.complete([]fabric.Op{s.operation(fabric.OpTaggedSend, s.window, endTag)}, 1, 0)
}
