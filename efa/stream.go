package efa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// Stream is a connection as a stream of bytes. It is a net.Conn, and does what
// one of package net does: it may be used by many goroutines at once, a call of
// Write is not mixed with others, a read returns what is there, deadlines end
// calls that are waiting, and no call leaves its buffer behind.
//
// Bytes up to 64 KiB at a time are copied, and a Write returns as soon as the
// peer has room for them. What is longer goes from the caller's memory, and what
// is read goes to it, unless there is a deadline: then it is copied as well, so
// that a call can return in time whatever the peer does. (A deadline that is set
// when the device is at the caller's memory already ends the call when the
// device has let go of it.)
//
// Errors are *net.OpError, for which errors.Is and errors.As find what a [Conn]
// says, but for io.EOF: the peer has closed, or ended its writing, and everything
// was read. To write after that, if the peer has closed, is ErrPeerClosed and
// syscall.EPIPE; a peer that is gone is ErrPeerLost and syscall.ECONNRESET.
type Stream struct {
	conn                        *Conn
	readDeadline, writeDeadline streamDeadline
}

var _ net.Conn = (*Stream)(nil)

// Stream returns the connection as a stream of bytes, the same one at each call.
// Bytes and messages should not be mixed in one direction: where messages begin
// means nothing to a stream, and a message of which a stream has read a part is
// what is left of it.
func (c *Conn) Stream() *Stream { return &c.stream }

// Conn returns the connection under the stream.
func (s *Stream) Conn() *Conn { return s.conn }

// Read reads what has arrived, and waits if that is nothing. It fills p from
// several messages if they are there.
func (s *Stream) Read(p []byte) (int, error) {
	limit := s.readDeadline.current()
	if err := s.usable(limit); err != nil {
		return 0, s.error("read", err)
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		k := newCall(s.conn, p)
		k.stream, k.aside = true, limit.set.Load()
		k.request.run = startRead
		n, err := s.conn.wait(limit, k)
		switch {
		case errors.Is(err, io.EOF):
			return n, io.EOF
		case err != nil:
			return n, s.error("read", err)
		case n > 0:
			return n, nil
		}
		// An empty message.
	}
}

// Write writes all of p, and returns when p may be used again; the peer may not
// have read it by then. With an error it returns how much was sent before.
func (s *Stream) Write(p []byte) (int, error) {
	limit := s.writeDeadline.current()
	if err := s.usable(limit); err != nil {
		return 0, s.error("write", err)
	}
	k := newCall(s.conn, p)
	k.stream, k.aside = true, limit.set.Load()
	k.request.run = startStreamWrite
	n, err := s.conn.wait(limit, k)
	if err != nil {
		err = s.error("write", err)
	}
	return n, err
}

// CloseWrite ends the writing of this side: the peer reads io.EOF behind what
// was written. Reading goes on. See [Conn.CloseWrite].
func (s *Stream) CloseWrite() error {
	if err := s.conn.CloseWrite(); err != nil {
		return s.error("close", err)
	}
	return nil
}

// Close ends the stream in order. Calls that are waiting end with net.ErrClosed.
// It returns when the peer has everything that was written, read or not, or
// after Config.DrainTimeout; see [Conn.Close].
func (s *Stream) Close() error {
	err := s.conn.Close()
	s.readDeadline.move(time.Time{})
	s.writeDeadline.move(time.Time{})
	if err != nil {
		return s.error("close", err)
	}
	return nil
}

// LocalAddr is the address of the control connection on this side, an [Addr].
func (s *Stream) LocalAddr() net.Addr { return Addr{s.conn.LocalAddr()} }

// RemoteAddr is the address of the control connection on the peer's side, an
// [Addr].
func (s *Stream) RemoteAddr() net.Addr { return Addr{s.conn.RemoteAddr()} }

// SetDeadline sets the deadlines of reading and of writing.
func (s *Stream) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetReadDeadline sets when calls of Read end with os.ErrDeadlineExceeded, those
// that are waiting included. The zero time is never. What had not been read by
// then is there for later calls.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.set(&s.readDeadline, t) }

// SetWriteDeadline sets when calls of Write end with os.ErrDeadlineExceeded,
// those that are waiting included. The zero time is never. A Write that ends so
// says how much was sent, and the stream can go on from there.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.set(&s.writeDeadline, t) }

func (s *Stream) set(d *streamDeadline, t time.Time) error {
	if s.conn.closing.Load() {
		return s.error("set", net.ErrClosed)
	}
	d.move(t)
	return nil
}

// usable finds what need not bother the reactor.
func (s *Stream) usable(limit *limitPassed) error {
	if s.conn.closing.Load() {
		return net.ErrClosed
	}
	return limit.Err()
}

func (s *Stream) error(op string, err error) error {
	var e *ConnError
	if errors.As(err, &e) {
		err = &streamError{why: e}
	}
	return &net.OpError{Op: op, Net: network, Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

// streamError is what a ConnError says besides the operation and the peer.
type streamError struct{ why *ConnError }

func (e *streamError) Error() string {
	if e.why.Cause == nil {
		return e.why.Kind.Error()
	}
	return e.why.Kind.Error() + ": " + e.why.Cause.Error()
}

// Unwrap returns the connection's error, and the code that programs know from
// TCP.
func (e *streamError) Unwrap() []error {
	switch {
	case errors.Is(e.why, ErrPeerClosed):
		return []error{e.why, syscall.EPIPE}
	case errors.Is(e.why, ErrPeerLost):
		return []error{e.why, syscall.ECONNRESET}
	}
	return []error{e.why}
}

// Timeout is for net.Error.
func (e *streamError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.why.Kind, &t) && t.Timeout()
}

const network = "weft"

// Addr is the address of an end of a stream: that of its control connection, on
// the network "weft".
type Addr struct{ Control net.Addr }

// Network returns "weft".
func (Addr) Network() string { return network }

// String returns the host:port of the control connection.
func (a Addr) String() string { return a.Control.String() }

// Accept waits for the next connection, as a stream; with it a Listener is a
// net.Listener, for http.Serve and others. See AcceptConn.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptConn(context.Background())
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: network, Addr: Addr{l.Addr()}, Err: err}
	}
	return c.Stream(), nil
}

var _ net.Listener = (*Listener)(nil)

// DialStream is [Dial] for a stream.
func DialStream(ctx context.Context, address string, config *Config) (*Stream, error) {
	c, err := Dial(ctx, address, config)
	if err != nil {
		return nil, err
	}
	return c.Stream(), nil
}

// DialContext is [Reactor.Dial] for a stream, in the form that http.Transport
// and others ask for. The network is that of the control connection, "tcp",
// "tcp4" or "tcp6", or "weft", which is the same as "tcp".
func (r *Reactor) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if err := checkNetwork(network); err != nil {
		return nil, err
	}
	c, err := r.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return c.Stream(), nil
}

func checkNetwork(name string) error {
	switch name {
	case network, "tcp":
		return nil
	}
	return &net.OpError{Op: "dial", Net: name, Err: fmt.Errorf("%w: weft dials \"weft\" or \"tcp\"", net.UnknownNetworkError(name))}
}
