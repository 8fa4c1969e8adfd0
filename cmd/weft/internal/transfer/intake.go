package transfer

import (
	"context"
	"time"
)

// intake reads messages ahead of the session that works on them, so that the
// next ones come in while files are hashed and written.
type intake struct {
	free, full chan []byte
	stop       context.CancelFunc
	err        error // why there are no more, valid when full is closed
	current    []byte
}

func newIntake(ctx context.Context, conn Conn, options Options) *intake {
	inner, stop := context.WithCancel(ctx)
	in := &intake{
		free: make(chan []byte, buffersAhead),
		full: make(chan []byte, buffersAhead),
		stop: stop,
	}
	for range buffersAhead {
		in.free <- nil // allocated when it is needed
	}
	go func() {
		defer close(in.full)
		for {
			select {
			case buffer := <-in.free:
				message, err := readInto(inner, conn, buffer, options.timeout())
				if err != nil {
					in.err = err
					return
				}
				in.full <- message
			case <-inner.Done():
				in.err = context.Cause(inner)
				return
			}
		}
	}()
	return in
}

func readInto(ctx context.Context, conn Conn, buffer []byte, timeout time.Duration) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	size, err := conn.MessageSize(limited)
	if err != nil {
		return nil, connectionError(ctx, err)
	}
	if size > MaxMessage {
		return nil, protocolError("a message of %d bytes, at most %d are allowed", size, MaxMessage)
	}
	if cap(buffer) < size {
		// Two sizes only: a peer that sends little costs little.
		capacity := MaxMessage
		if size <= maxSpeech {
			capacity = maxSpeech
		}
		buffer = make([]byte, 0, capacity)
	}
	n, err := conn.ReadMessage(limited, buffer[:size])
	if err != nil {
		return nil, connectionError(ctx, err)
	}
	return buffer[:n], nil
}

// next gives back the message before and returns the next one, which is the
// caller's until next is called again.
func (in *intake) next() ([]byte, error) {
	if in.current != nil {
		in.free <- in.current[:0]
		in.current = nil
	}
	message, ok := <-in.full
	if !ok {
		return nil, in.err
	}
	in.current = message
	return message, nil
}

// drain takes what still comes in, until the peer is done or the limit is
// reached. A sender that has not noticed a failure yet goes on writing, and
// could not read the verdict of a receiver that left.
func (in *intake) drain(limit time.Duration) {
	timer := time.AfterFunc(limit, in.stop)
	defer timer.Stop()
	for {
		if _, err := in.next(); err != nil {
			return
		}
	}
}

// close ends the reading; the connection is not read any more on return.
func (in *intake) close() {
	in.stop()
	for range in.full {
	}
}
