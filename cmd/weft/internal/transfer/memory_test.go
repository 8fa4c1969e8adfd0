package transfer

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryConn is one end of a connection in memory, with room for a few
// messages, so that a reader that stops holds the writer up.
type memoryConn struct {
	in, out *memoryQueue
	tamper  func([]byte) // changes what is written
}

type memoryQueue struct {
	messages chan []byte
	head     []byte // taken from messages by MessageSize
	haveHead bool
	closed   chan struct{}
	once     sync.Once
	err      error // what the reader gets after closed
}

func newMemoryQueue() *memoryQueue {
	return &memoryQueue{messages: make(chan []byte, 4), closed: make(chan struct{})}
}

func (q *memoryQueue) close(err error) {
	q.once.Do(func() {
		q.err = err
		close(q.closed)
	})
}

func memoryPair() (a, b *memoryConn) {
	x, y := newMemoryQueue(), newMemoryQueue()
	return &memoryConn{in: x, out: y}, &memoryConn{in: y, out: x}
}

func (c *memoryConn) WriteMessage(ctx context.Context, b []byte) error {
	message := append([]byte(nil), b...)
	if c.tamper != nil {
		c.tamper(message)
	}
	select {
	case <-c.out.closed:
		return errBroken
	default:
	}
	select {
	case c.out.messages <- message:
		return nil
	case <-c.out.closed:
		return errBroken
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errBroken = errors.New("broken")

func (c *memoryConn) MessageSize(ctx context.Context) (int, error) {
	if c.in.haveHead {
		return len(c.in.head), nil
	}
	select {
	case c.in.head = <-c.in.messages:
	default:
		select {
		case c.in.head = <-c.in.messages:
		case <-c.in.closed:
			select {
			case c.in.head = <-c.in.messages:
			default:
				return 0, c.in.err
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	c.in.haveHead = true
	return len(c.in.head), nil
}

func (c *memoryConn) ReadMessage(ctx context.Context, b []byte) (int, error) {
	n, err := c.MessageSize(ctx)
	if err != nil {
		return 0, err
	}
	if n > len(b) {
		return 0, io.ErrShortBuffer
	}
	copy(b, c.in.head)
	c.in.haveHead = false
	return n, nil
}

// Close lets the peer read what was written, and then io.EOF. The other
// direction stays open.
func (c *memoryConn) Close() {
	c.out.close(io.EOF)
}

// Kill ends both directions as the death of this side would.
func (c *memoryConn) Kill() {
	c.out.close(errBroken)
	c.in.close(errBroken)
}

// outcome is how one side ended.
type outcome struct {
	Summary
	err error
}

// run carries sources into dir over a pair of connections.
func run(t *testing.T, sources []Source, dir string, tamper func([]byte)) (sent, received outcome) {
	t.Helper()
	a, b := memoryPair()
	a.tamper = tamper
	return carry(t, a, b, sources, openRoot(t, dir), Options{}, Options{})
}

// carry has a send and b receive.
func carry(t *testing.T, a, b *memoryConn, sources []Source, root *os.Root, sending, receiving Options) (sent, received outcome) {
	t.Helper()
	done := make(chan outcome)
	go func() {
		summary, err := Receive(t.Context(), b, root, receiving)
		b.Close()
		done <- outcome{summary, err}
	}()
	summary, err := Send(t.Context(), a, sources, sending)
	a.Close()
	return outcome{summary, err}, <-done
}

// openRoot opens a folder until the test ends.
func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}
