package efa

import (
	"errors"
	"fmt"
	"net"
)

// The ends that a connection can come to, for errors.Is. A connection closed by
// this side is net.ErrClosed, and reading to the end of one that the peer
// closed is io.EOF.
var (
	// ErrPeerLost: the peer's process or host went away without closing.
	ErrPeerLost = errors.New("peer lost")
	// ErrPeerClosed: the peer closed the connection, so nothing can be written.
	ErrPeerClosed = errors.New("closed by the peer")
	// ErrProtocol: the peer sent what it should not have.
	ErrProtocol = errors.New("protocol violation by the peer")
	// ErrHandshake: the two sides could not agree on a connection.
	ErrHandshake = errors.New("handshake failed")
	// ErrTooManyConnections: the reactor has MaxConnections of them.
	ErrTooManyConnections = errors.New("too many connections")
)

// ConfigError is about a Config that cannot be used.
type ConfigError struct {
	Field, Detail string
}

func (e *ConfigError) Error() string { return "efa: Config." + e.Field + ": " + e.Detail }

// ConnError is what ended a connection, or an operation on it. It unwraps to
// its kind (ErrPeerLost, ErrProtocol, net.ErrClosed and so on) and to its cause.
type ConnError struct {
	// Op is what was being done: "read", "write", "close", "dial".
	Op string
	// Peer is the control connection's remote address.
	Peer net.Addr
	// Kind is one of the errors of this package, or net.ErrClosed.
	Kind error
	// Cause has more, and may be nil.
	Cause error
}

func (e *ConnError) Error() string {
	s := "efa: " + e.Op
	if e.Peer != nil {
		s += " " + e.Peer.String()
	}
	s += ": " + e.Kind.Error()
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the kind and the cause.
func (e *ConnError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// MessageSizeError is about a message that does not fit: into what the peer
// accepts, when writing; into the buffer, when reading, in which case the
// message is still there for the next read.
type MessageSizeError struct {
	Size, Limit int64
	Writing     bool
}

func (e *MessageSizeError) Error() string {
	if e.Writing {
		return fmt.Sprintf("efa: write of %d bytes: the peer accepts messages of up to %d bytes", e.Size, e.Limit)
	}
	return fmt.Sprintf("efa: read into %d bytes: the message has %d bytes, and stays for the next read", e.Limit, e.Size)
}

// InFlightError says that a call gave up while the device still had its buffer.
// The buffer must be left alone until Released is closed.
type InFlightError struct {
	// Err is why the call gave up.
	Err error
	// Released is closed when the buffer is the caller's again.
	Released <-chan struct{}
}

func (e *InFlightError) Error() string {
	return e.Err.Error() + " (the buffer is still in use by the device)"
}

// Unwrap returns the reason.
func (e *InFlightError) Unwrap() error { return e.Err }

// DeviceError says that the device itself failed, and with it every connection
// of its reactor.
type DeviceError struct{ Err error }

func (e *DeviceError) Error() string { return "efa: device: " + e.Err.Error() }

// Unwrap returns what the device reported.
func (e *DeviceError) Unwrap() error { return e.Err }
