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
	// ErrPeerLost: the peer's process or host went away without closing. So the
	// control connection says, by ending or by being silent for longer than
	// Config.PeerTimeout, or the device by the code of an operation:
	//
	//	ECONNREFUSED, ECONNRESET, ECONNABORTED,   the peer's process is gone, or
	//	ENOTCONN, ESHUTDOWN, EPIPE                its endpoint (a bad QP of EFA)
	//	EHOSTUNREACH, EHOSTDOWN, ENETUNREACH,     its host is
	//	ENETRESET, ETIMEDOUT
	//	FI_ENORX                                  it has not received for all the
	//	                                          retries (RNR) of the provider
	//	EREMOTEIO                                 it answers with an error
	//	EIO, ENOENT                               the same, of sockets
	//	ECANCELED                                 the same, of tcp
	//
	// Every other code is ErrTransfer. The cause is the *fabric.Error.
	ErrPeerLost = errors.New("peer lost")
	// ErrTransfer: the device could not carry a message of this connection, for a
	// reason that does not say that the peer is lost: it was refused, or failed on
	// the way, or there was no memory, or none could be registered. Other
	// connections of the reactor go on.
	ErrTransfer = errors.New("message not carried")
	// ErrPeerClosed: the peer closed the connection, so nothing can be written.
	ErrPeerClosed = errors.New("closed by the peer")
	// ErrProtocol: the peer sent what it should not have.
	ErrProtocol = errors.New("protocol violation by the peer")
	// ErrHandshake: the two sides could not agree on a connection.
	ErrHandshake = errors.New("handshake failed")
	// ErrTooManyConnections: the reactor has MaxConnections of them.
	ErrTooManyConnections = errors.New("too many connections")
)

// Why a handshake failed. Each of these is ErrHandshake as well. The peer is
// told, as a *RefusedError, which is of the same kind.
var (
	// ErrUnauthorized: one side has a key that the other does not have.
	ErrUnauthorized error = handshakeError("not authorized")
	// ErrTLS: only one side uses TLS, or one does not trust the other's
	// certificate.
	ErrTLS error = handshakeError("no agreement on TLS")
	// ErrTooManyHandshakes: the listener has MaxHandshakes under way, and the
	// peer was the one that had kept it waiting for the longest time.
	ErrTooManyHandshakes error = handshakeError("too many handshakes")
	// ErrHandshakeTimeout: HelloTimeout or HandshakeTimeout has passed.
	ErrHandshakeTimeout error = handshakeError("the handshake took too long")
	// ErrFrameTooLong: a frame of the control connection is longer than any can
	// be.
	ErrFrameTooLong error = handshakeError("frame too long")
)

// handshakeError is a kind of ErrHandshake.
type handshakeError string

func (e handshakeError) Error() string { return string(e) }

// Is makes the error ErrHandshake.
func (e handshakeError) Is(target error) bool { return target == ErrHandshake }

// ConfigError is about a Config that cannot be used.
type ConfigError struct {
	Field, Detail string
}

func (e *ConfigError) Error() string { return "efa: Config." + e.Field + ": " + e.Detail }

// ConnError is what ended a connection, or an operation on it. It unwraps to
// its kind (ErrPeerLost, ErrProtocol, net.ErrClosed and so on) and to its cause.
type ConnError struct {
	// Op is what was being done: "read", "write", "flush", "close", "set", "dial", "accept",
	// "listen", "attach", or "connection" where it was nothing in particular.
	Op string
	// Peer is the control connection's remote address, or nil where there was no
	// connection yet.
	Peer net.Addr
	// Kind is what to test for: an error of this package, net.ErrClosed,
	// os.ErrDeadlineExceeded, fabric.ErrNotSupported, a *DeviceError, or the cause of a
	// context.
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

// MessageSizeError is about a message that does not fit. When writing, Limit is what the
// call takes: Conn.MaxMessage, which the peer accepts, or Conn.CopyLimit for TrySend, or the
// eager limit for those of Progress. When reading it is the buffer, and the message is still
// there for the next read.
type MessageSizeError struct {
	Size, Limit int64
	Writing     bool
}

func (e *MessageSizeError) Error() string {
	if e.Writing {
		return fmt.Sprintf("efa: write of %d bytes: up to %d bytes can be written in this way", e.Size, e.Limit)
	}
	return fmt.Sprintf("efa: read into %d bytes: the message has %d bytes, and stays for the next read", e.Limit, e.Size)
}

// PendingError says that so much waits for the reader already that nothing more is
// taken. It is ErrWouldBlock.
type PendingError struct {
	Messages     int
	Bytes        int64
	MessageLimit int
	ByteLimit    int64
}

func (e *PendingError) Error() string {
	return fmt.Sprintf("efa: %d messages of %d bytes wait for the reader already, at most %d of %d may", e.Messages, e.Bytes, e.MessageLimit, e.ByteLimit)
}

// Is makes the error ErrWouldBlock.
func (e *PendingError) Is(target error) bool { return target == ErrWouldBlock }

// InFlightError says that a call gave up while the device still had its buffer.
// The buffer must be left alone until Released is closed. An error may have several of
// them, one for each buffer: [Released] is for all.
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

// Released is closed when the device has none of the buffers of err any more: those of all
// *InFlightError that it wraps, of which errors.As finds the first only. Without one, it is
// closed already. It may be called by any goroutine.
func Released(err error) <-chan struct{} {
	all := inFlight(nil, err)
	if len(all) == 1 {
		return all[0].Released
	}
	released := make(chan struct{})
	if len(all) == 0 {
		close(released)
		return released
	}
	go func() {
		defer close(released)
		for _, e := range all {
			<-e.Released
		}
	}()
	return released
}

// inFlight adds those that an error wraps to a list.
func inFlight(all []*InFlightError, err error) []*InFlightError {
	if e, is := any(err).(*InFlightError); is {
		all = append(all, e)
	}
	switch e := err.(type) { //nolint:errorlint // it is the tree itself that is walked
	case interface{ Unwrap() error }:
		all = inFlight(all, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = inFlight(all, one)
		}
	}
	return all
}

// DeviceError says that the device itself failed, and with it every connection
// of its reactor; or that a rail did, and with it those connections that use it.
type DeviceError struct {
	Err error
	// Rail is the domain of the rail that failed, or its address where the domain
	// has no name; empty if it was the reactor's first device.
	Rail string
}

func (e *DeviceError) Error() string {
	if e.Rail != "" {
		return "efa: rail " + e.Rail + ": " + e.Err.Error()
	}
	return "efa: device: " + e.Err.Error()
}

// Unwrap returns what the device reported.
func (e *DeviceError) Unwrap() error { return e.Err }
