package efa

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// ErrAmbiguous says that messages of a connection could not be told from those
// of another one of the same reactor.
var ErrAmbiguous = errors.New("ambiguous connection id")

// AttachConfig says what the two programs have agreed on, in their own way,
// about a connection. The zero value of each field but Address works.
type AttachConfig struct {
	// Address is the peer's endpoint address: what its LocalAddress returns, or
	// fi_getname in C.
	Address []byte
	// LocalID is the connection id on messages to this side, below 2^29;
	// RemoteID that on messages to the peer, below 2^30. They are the upper 30
	// bits of a tag. 0 is the layout of a program that knows of no such id.
	LocalID, RemoteID uint32
	// Shared allows other peers the same LocalID. Payloads are then told apart
	// by who sent them, which means that each is received into memory of
	// MaxRead bytes and copied from there. Every connection with that id must
	// be Shared and have the same MaxRead, and while the reader of one of them
	// is behind by the window, the others get nothing either.
	Shared bool
	// FirstWrite and FirstRead are the ids of the first message in each
	// direction.
	FirstWrite, FirstRead uint32
	// MaxWrite is the longest message in bytes that the peer accepts; 0 means
	// the longest that the device carries. MaxRead is the longest that is
	// accepted from it; 0 means Config.MaxMessage, or 1 MiB if Shared.
	MaxWrite, MaxRead int64
}

// mostShared is the longest message in bytes if the id is shared and nothing
// else is said.
const mostShared = 1 << 20

// LocalAddress is the address of the reactor's endpoint, for Attach at the peer
// or fi_av_insert in C. Its format is the provider's.
func (r *Reactor) LocalAddress() []byte { return slices.Clone(r.address) }

// Attach makes a connection to an endpoint of which the application knows the
// address, without a handshake and a control connection. Messages go in the
// plain form: a length message of 8 bytes, little-endian, with the tag
// 1<<32 | id, and unless it says 0 a payload message with the tag 1<<33 | id,
// where id counts the messages and wraps at 2^32. A connection id, if it is not
// 0, is in the bits from 34 up. The peer may be a program that knows nothing of
// weft.
//
// What the control connection and credits do for other connections is left to
// the application:
//
//   - Both sides attach before either writes. A message from an address that
//     is not attached yet may be dropped, which later ends the connection with
//     ErrProtocol or has a reader wait for ever.
//   - A peer that is gone is noticed only if the provider says so of a send
//     (ErrPeerLost). Reads end by their context, or by Close.
//   - A writer does not know how far the reader is. When this side's readers
//     are behind by Config.WindowMessages or WindowBytes, further messages are
//     left with the provider, which keeps them or holds the writer back, and
//     may hold up everything else between the two endpoints as well. When a
//     peer does so, a write waits after a share of that window, until the
//     device is done with an earlier one.
//   - Close waits until the device is done with everything that was begun, at
//     most for Config.DrainTimeout, and tells the peer nothing. Whether the
//     peer has it is for the application to ask: the end of the reactor, or of
//     the process, may lose what the device was done with. What the peer sends
//     after that stays with the provider, and is the next connection's if that
//     has the same peer and ids; the application takes others.
//
// Attach waits, until ctx ends, if a connection with the same peer and LocalID
// was closed and the device still holds buffers of it. Errors are *ConnError:
// ErrAmbiguous if there is such a connection, or another one with this LocalID
// and not both are Shared; ErrTooManyConnections; fabric.ErrInvalid if the
// address or another field cannot be right; fabric.ErrNotSupported on shm before
// libfabric 2; *DeviceError.
func (r *Reactor) Attach(ctx context.Context, config AttachConfig) (*Conn, error) {
	remote := EndpointAddr{provider: r.attributes.Provider, address: string(config.Address)}
	if ctx.Err() != nil {
		return nil, attachError(remote, context.Cause(ctx))
	}
	for {
		c, wait, err := r.attach(&config, remote)
		if err != nil {
			return nil, attachError(remote, err)
		}
		if c != nil {
			return c, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, attachError(remote, context.Cause(ctx))
		}
	}
}

// attach makes the connection, or says what to wait for.
func (r *Reactor) attach(config *AttachConfig, remote EndpointAddr) (c *Conn, wait <-chan struct{}, err error) {
	k := *config
	if k.MaxRead == 0 {
		if k.MaxRead = r.config.MaxMessage; k.Shared {
			k.MaxRead = min(k.MaxRead, mostShared)
		}
	}
	if k.MaxWrite == 0 {
		k.MaxWrite = int64(min(r.attributes.MaxMessage, 1<<62))
	}
	if err := k.check(r.config.MaxMessage); err != nil {
		return nil, nil, err
	}
	if r.attributes.MasksMissWaiting {
		return nil, nil, refused(fabric.ErrNotSupported, "provider %s finds no length that came before its receive", r.attributes.Provider)
	}
	local := EndpointAddr{provider: r.attributes.Provider, address: string(r.address)}
	c = &Conn{
		reactor: r, id: k.LocalID, remoteID: k.RemoteID,
		control:    &control{tcp: noControl{local: local, remote: remote}},
		ended:      make(chan struct{}),
		maxMessage: int64(min(uint64(k.MaxWrite), r.attributes.MaxMessage)),
		piece:      int(min(r.attributes.MaxMessage, 1<<62)),
		peerWindow: math.MaxUint64,
		nextWrite:  k.FirstWrite,
		reads:      tagged.NewReadDeque[inbound](k.FirstRead, r.config.WindowMessages),
		plain:      &plainConn{writes: min(r.config.WindowMessages, max(r.attributes.MaxOperations/16, 1))},
	}
	r.do(func() {
		if r.broken != nil {
			err = r.broken
			return
		}
		if c.peer, err = r.insert(canonical(k.Address, r.attributes.IP)); err != nil {
			err = refused(fabric.ErrInvalid, "the peer's address: %w", err)
			return
		}
		if wait, err = r.enterPlain(c, &k); wait != nil || err != nil {
			r.remove(c.peer)
			return
		}
		r.retain()
		r.opened(c)
	})
	if wait != nil || err != nil {
		return nil, wait, err
	}
	return c, nil, nil
}

// check finds what cannot be right whatever else there is.
func (k *AttachConfig) check(maxMessage int64) error {
	var what string
	switch {
	case k.LocalID >= tagged.HandshakeID:
		what = fmt.Sprintf("LocalID %d is not within 0 to %d", k.LocalID, tagged.HandshakeID-1)
	case k.RemoteID > tagged.MaxConnection:
		what = fmt.Sprintf("RemoteID %d is not within 0 to %d", k.RemoteID, tagged.MaxConnection)
	case k.MaxWrite < 0:
		what = fmt.Sprintf("MaxWrite %d is negative", k.MaxWrite)
	case k.MaxRead < 0 || k.MaxRead > maxMessage:
		what = fmt.Sprintf("MaxRead %d is not within 0 to Config.MaxMessage, %d", k.MaxRead, maxMessage)
	default:
		return nil
	}
	return refused(fabric.ErrInvalid, "%s", what)
}

// refused is why there is no connection.
func refused(kind error, format string, values ...any) error {
	return &ConnError{Op: "attach", Kind: kind, Cause: fmt.Errorf(format, values...)}
}

func attachError(peer EndpointAddr, err error) error {
	var e *ConnError
	if !errors.As(err, &e) {
		return &ConnError{Op: "attach", Peer: peer, Kind: err}
	}
	e.Peer = peer
	return e
}

// canonical makes addresses of one endpoint the same bytes: what fills up a
// struct sockaddr_in means nothing, and need not be zero.
func canonical(address []byte, ip bool) []byte {
	if a := udpAddress(address); ip && a != nil && len(address) == sizeofIPv4 {
		address = slices.Clone(address)
		clear(address[8:])
	}
	return address
}

// EndpointAddr is the net.Addr of an attached connection: the address of an
// endpoint, in the provider's format.
type EndpointAddr struct{ provider, address string }

// Network is the name of the provider.
func (a EndpointAddr) Network() string { return a.provider }

// String is an IP address and port, or a name, where the address is one, and
// hexadecimal otherwise.
func (a EndpointAddr) String() string {
	if ip := udpAddress([]byte(a.address)); ip != nil {
		return ip.String()
	}
	text := strings.TrimRight(a.address, "\x00")
	if text != "" && printable([]byte(text)) == text {
		return text
	}
	return hex.EncodeToString([]byte(a.address))
}

// Bytes is the address itself.
func (a EndpointAddr) Bytes() []byte { return []byte(a.address) }

// noControl stands where other connections have their control connection. It
// has the addresses; what is written to it goes nowhere.
type noControl struct{ local, remote EndpointAddr }

func (n noControl) LocalAddr() net.Addr              { return n.local }
func (n noControl) RemoteAddr() net.Addr             { return n.remote }
func (n noControl) Read([]byte) (int, error)         { return 0, io.EOF }
func (n noControl) Write(b []byte) (int, error)      { return len(b), nil }
func (n noControl) Close() error                     { return nil }
func (n noControl) SetDeadline(time.Time) error      { return nil }
func (n noControl) SetReadDeadline(time.Time) error  { return nil }
func (n noControl) SetWriteDeadline(time.Time) error { return nil }
