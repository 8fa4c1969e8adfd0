package efa

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Listener accepts connections. Its methods may be called from any goroutine.
type Listener struct {
	reactor  *Reactor
	tcp      net.Listener
	tls      *tls.Config // or nil
	accepted chan *Conn
	admitted *admission
	warnings throttle

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	workers  sync.WaitGroup
	once     sync.Once
	closeErr error
}

// Listen listens for control connections at host:port and opens a device, whose
// endpoint is bound to host if that names an address of this machine, and else as
// Config.Source says. The device is closed when the listener and all its connections
// are. ctx bounds the opening only.
//
// Errors are those of net.Listen, *ConfigError and *fabric.ChoiceError, and
// fabric.ErrNotSupported in a program that was built without cgo, or not for Linux.
func Listen(ctx context.Context, address string, config *Config) (*Listener, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, config.abandon(err)
	}
	secure, err := c.serverTLS()
	if err != nil {
		return nil, config.abandon(err)
	}
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, config.abandon(err)
	}
	var source string
	// Bound to all addresses, the endpoint takes that of the default route
	// (fabric.Preference): by which one the dialers come is known only later.
	if a, ok := tcp.Addr().(*net.TCPAddr); ok && !a.IP.IsUnspecified() {
		source = withZone(a.IP, a.Zone)
	}
	r, err := open(c, source)
	if err != nil {
		return nil, config.abandon(errors.Join(err, tcp.Close()))
	}
	return r.serve(tcp, secure), nil
}

// Listen listens for control connections at host:port. Connections go through
// the reactor's device, and outlive the listener. Errors are those of net.Listen,
// *ConfigError, if there is TLS without a certificate, and *ConnError, if the reactor
// is closed or its device has failed.
func (r *Reactor) Listen(ctx context.Context, address string) (*Listener, error) {
	if err := r.over(); err != nil {
		return nil, &ConnError{Op: "listen", Kind: err}
	}
	secure, err := r.config.serverTLS()
	if err != nil {
		return nil, err
	}
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return r.serve(tcp, secure), nil
}

func (r *Reactor) serve(tcp net.Listener, secure *tls.Config) *Listener {
	l := &Listener{
		reactor: r, tcp: tcp, tls: secure,
		accepted: make(chan *Conn, r.config.MaxHandshakes),
		admitted: newAdmission(r.config.MaxHandshakes),
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	l.ctx, l.cancel = ctx, func() { cancel(errListenerClosed) }
	r.retain()
	l.workers.Add(1)
	go l.loop()
	r.log.Info("weft: listening", "address", l.Addr())
	return l
}

// Addr is the address of the control connections.
func (l *Listener) Addr() net.Addr { return l.tcp.Addr() }

// Provider is the name of the provider that carries the messages.
func (l *Listener) Provider() string { return l.reactor.Provider() }

// errListenerClosed is what peers in the middle of their handshakes are told.
var errListenerClosed = fmt.Errorf("the listener has been closed: %w", net.ErrClosed)

// AcceptConn waits for the next connection that has passed its handshake. After
// Close, or that of the reactor, the error is net.ErrClosed, and if the device has
// failed a *DeviceError.
func (l *Listener) AcceptConn(ctx context.Context) (*Conn, error) {
	// A listener that is closed has nothing to give, even if something waits.
	if l.ctx.Err() != nil {
		return nil, l.error(net.ErrClosed)
	}
	if err := l.reactor.over(); err != nil {
		return nil, l.error(err)
	}
	select {
	case c := <-l.accepted:
		l.admitted.leave()
		return c, nil
	case <-l.ctx.Done():
		return nil, l.error(net.ErrClosed)
	case <-l.reactor.done:
		return nil, l.error(l.reactor.broken)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *Listener) error(why error) error {
	return &ConnError{Op: "accept", Peer: l.Addr(), Kind: why}
}

// Close stops listening. Connections that AcceptConn has returned go on; those
// that still wait for it end. It may be called more than once.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.cancel()
		err := l.tcp.Close()
		l.workers.Wait()
		for {
			select {
			case c := <-l.accepted:
				err = errors.Join(err, c.CloseNow())
				continue
			default:
			}
			break
		}
		l.reactor.log.Info("weft: listener closed", "address", l.Addr())
		l.closeErr = errors.Join(err, l.reactor.drop())
	})
	return l.closeErr
}

func (l *Listener) loop() {
	wear(l.reactor.labels.handshake)
	defer l.workers.Done()
	for {
		tcp, err := l.tcp.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, say: others may be closed soon.
			l.warnings.log(l.reactor.log, "weft: accepting a control connection", "error", err)
			select {
			case <-time.After(10 * time.Millisecond):
			case <-l.ctx.Done():
			}
			continue
		}
		ctx, drop := context.WithCancelCause(l.ctx)
		v := &visitor{tcp: tcp, drop: drop}
		// Beyond the limit, peers wait in the system's queue.
		if !l.admitted.enter(l.ctx, v) {
			drop(nil)
			tcp.Close()
			return
		}
		l.workers.Add(1)
		go l.shake(ctx, v)
	}
}

func (l *Listener) shake(ctx context.Context, v *visitor) {
	wear(l.reactor.labels.handshake)
	defer l.workers.Done()
	defer v.drop(nil)
	o := newOpening(v.tcp)
	o.spoke = func() { l.admitted.spoke(v) }
	o.introduced = func() { l.admitted.stays(v) }
	c, err := l.reactor.accept(ctx, o, l.tls)
	l.admitted.stays(v)
	if err != nil {
		l.admitted.leave()
		l.warnings.log(l.reactor.log, "weft: handshake failed", "peer", v.tcp.RemoteAddr(), "error", err)
		return
	}
	l.accepted <- c
}
