package suite

import "github.com/weft-go/weft/fabric"

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
			if err := expectNumber(in, uint64(i)); err != nil {
				return times{}, err
			}
			putNumber(out, ^uint64(i))
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
		putNumber(out, uint64(i))
		if err := s.complete(posts, sends, 1); err != nil {
			return times{}, err
		}
		if err := expectNumber(in, ^uint64(i)); err != nil {
			return times{}, err
		}
	}
	if total == watch.next {
		watch.mark()
	}
	return watch.stop(2)
}
