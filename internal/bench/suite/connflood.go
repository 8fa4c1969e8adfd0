package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-go/weft/efa"
)

// The ways in which a program can send a flood over a connection.
const (
	senderWrite     = "write"     // WriteMessage
	senderTry       = "try"       // TrySend, and OnReady when there is no room
	senderAsync     = "async"     // WriteMessageAsync
	senderFragments = "fragments" // SendZeroCopy, many with one Completion
)

// sendAll sends messages numbered from 0, and waits for the word that all have
// arrived: how many they were.
func (s *connSide) sendAll() error {
	send, known := map[string]func(total int) error{
		senderWrite: s.sendByWrite, senderTry: s.sendByTry, senderAsync: s.sendAsync, senderFragments: s.sendFragments,
	}[s.sender]
	if !known {
		return fmt.Errorf("-sender is write, try, async or fragments, not %q", s.sender)
	}
	if err := s.talk.waitForGo(); err != nil {
		return err
	}
	total := s.warmup + s.count
	if err := send(total); err != nil {
		return err
	}
	return s.receive(make([]byte, numberSize), uint64(total))
}

func (s *connSide) receiveAll() (times, error) {
	buf := touched(make([]byte, s.size))
	if err := s.talk.waitForGo(); err != nil {
		return times{}, err
	}
	watch := newStopwatch(s.order, s.floodPart())
	total := s.warmup + s.count
	for i := range total {
		if err := s.receive(buf, uint64(i)); err != nil {
			return times{}, err
		}
		// The clock starts when the warm-up has arrived.
		if i+1 == watch.next {
			watch.mark()
		}
	}
	took, err := watch.stop(1)
	if err != nil {
		return times{}, err
	}
	end := make([]byte, numberSize)
	putNumber(end, uint64(total))
	return took, s.conn.WriteMessage(context.Background(), end)
}

func (s *connSide) sendByWrite(total int) error {
	buf := touched(make([]byte, s.size))
	for i := range total {
		putNumber(buf, uint64(i))
		if err := s.conn.WriteMessage(context.Background(), buf); err != nil {
			return err
		}
	}
	return nil
}

// sendByTry goes on in the callback when it would have had to wait once.
func (s *connSide) sendByTry(total int) error {
	buf, next := touched(make([]byte, s.size)), 0
	feed := func(send func([]byte) error) error {
		for ; next < total; next++ {
			putNumber(buf, uint64(next))
			if err := send(buf); err != nil {
				return err
			}
		}
		return nil
	}
	ended := make(chan error, 1)
	for {
		if err := feed(s.conn.TrySend); !errors.Is(err, efa.ErrWouldBlock) {
			return err
		}
		err := s.conn.OnReady(func(send func([]byte) error) efa.Pending {
			err := feed(send)
			if errors.Is(err, efa.ErrWouldBlock) {
				return efa.PendingAgain
			}
			ended <- err
			return efa.PendingDone
		})
		switch {
		case err == nil:
			return <-ended
		case !errors.Is(err, efa.ErrReady):
			return err
		}
	}
}

// A sender that does not wait for each message has buffers in two batches: it
// fills one while the connection has the other.
type batches struct {
	size   int // of a message
	batch  int // messages
	memory []byte
	ended  chan error // for each batch that the connection is done with
}

// newBatches makes room for the window, and for short messages for more, that
// wait for the window while the reader works.
func newBatches(o order) *batches {
	const bytes, most = 1 << 16, 512
	b := &batches{size: o.size, batch: max((o.window+1)/2, min(bytes/o.size, most))}
	b.memory = touched(make([]byte, 2*b.batch*b.size))
	b.ended = make(chan error, 3) // both, and an error
	return b
}

// buffer waits until the buffer of message i is free, and fills it.
func (b *batches) buffer(i int) ([]byte, error) {
	if i >= 2*b.batch && i%b.batch == 0 {
		if err := <-b.ended; err != nil {
			return nil, err
		}
	}
	place := i % (2 * b.batch) * b.size
	buf := b.memory[place : place+b.size : place+b.size]
	putNumber(buf, uint64(i))
	return buf, nil
}

func (s *connSide) sendAsync(total int) error {
	b, n := newBatches(s.order), 0
	failed := false
	// One call at a time, in order.
	done := func(err error) {
		switch n++; {
		case failed:
		case err != nil:
			failed = true
			b.ended <- err
		case n%b.batch == 0:
			b.ended <- nil
		}
	}
	for i := range total {
		buf, err := b.buffer(i)
		if err != nil {
			return err
		}
		if err := s.conn.WriteMessageAsync(buf, done); err != nil {
			return err
		}
	}
	return nil
}

func (s *connSide) sendFragments(total int) error {
	b := newBatches(s.order)
	var done *efa.Completion
	for i := range total {
		buf, err := b.buffer(i)
		if err != nil {
			return err
		}
		if i%b.batch == 0 {
			done = efa.NewCompletion(min(b.batch, total-i), func(err error) { b.ended <- err })
		}
		if err := s.conn.SendZeroCopy(buf, done); err != nil {
			return err
		}
	}
	return nil
}
