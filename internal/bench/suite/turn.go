package suite

import (
	"errors"
	"fmt"

	"github.com/weft-go/weft/fabric"
)

// turn takes a turn and returns what is complete, until the next one. What was
// refused is the caller's to keep.
func (s *side) turn(posts []fabric.Op, spins int) ([]fabric.Completion, error) {
	n, err := s.port.Turn(posts, s.completions[:], spins)
	if err != nil {
		return nil, err
	}
	for i := range s.completions[:n] {
		if err := s.completions[i].Err; err != nil {
			return nil, err
		}
	}
	return s.completions[:n], nil
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
		done, err := s.turn(posts, turns)
		if err != nil {
			return err
		}
		if posts, err = refused(posts); err != nil {
			return err
		}
		for i := range done {
			c := &done[i]
			switch {
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
		if len(done) == 0 {
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
