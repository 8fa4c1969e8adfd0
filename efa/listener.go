package efa

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Listener accepts connections. Its methods may be called from any goroutine.
type Listener struct {
	reactor  *Reactor
	tcp      net.Listener
	accepted chan *Conn
	places   chan struct{} // one for each handshake under way or not yet taken

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	workers  sync.WaitGroup
	once     sync.Once
	closeErr error
}

// Listen listens for control connections at host:port and opens a device, whose
// endpoint is bound to host if that names an address of this machine. The
// device is closed when the listener and all its connections are. ctx bounds
// the opening only.
//
// Errors are those of net.Listen and *fabric.ChoiceError.
func Listen(ctx context.Context, address string, config *Config) (*Listener, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	var source string
	// Bound to all addresses, the endpoint takes the one that the provider
	// prefers, which is one that other hosts can reach.
	if a, ok := tcp.Addr().(*net.TCPAddr); ok && !a.IP.IsUnspecified() {
		source = withZone(a.IP, a.Zone)
	}
	r, err := open(c, source)
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	return r.serve(tcp), nil
}

// Listen listens for control connections at host:port. Connections go through
// the reactor's device, and outlive the listener.
func (r *Reactor) Listen(ctx context.Context, address string) (*Listener, error) {
	tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return r.serve(tcp), nil
}

func (r *Reactor) serve(tcp net.Listener) *Listener {
	l := &Listener{
		reactor: r, tcp: tcp,
		accepted: make(chan *Conn, r.config.MaxHandshakes),
		places:   make(chan struct{}, r.config.MaxHandshakes),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	r.retain()
	l.workers.Add(1)
	go l.loop()
	return l
}

// Addr is the address of the control connections.
func (l *Listener) Addr() net.Addr { return l.tcp.Addr() }

// Provider is the name of the provider that carries the messages.
func (l *Listener) Provider() string { return l.reactor.Provider() }

// AcceptConn waits for the next connection that has passed its handshake. After
// Close the error is net.ErrClosed.
func (l *Listener) AcceptConn(ctx context.Context) (*Conn, error) {
	// A listener that is closed has nothing to give, even if something waits.
	if l.ctx.Err() != nil {
		return nil, &ConnError{Op: "accept", Peer: l.Addr(), Kind: net.ErrClosed}
	}
	select {
	case c := <-l.accepted:
		<-l.places
		return c, nil
	case <-l.ctx.Done():
		return nil, &ConnError{Op: "accept", Peer: l.Addr(), Kind: net.ErrClosed}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
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
		l.closeErr = errors.Join(err, l.reactor.drop())
	})
	return l.closeErr
}

func (l *Listener) loop() {
	defer l.workers.Done()
	for {
		// Beyond the limit, peers wait in the system's queue.
		select {
		case l.places <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		tcp, err := l.tcp.Accept()
		if err != nil {
			<-l.places
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, say: others may be closed soon.
			l.reactor.log.Warn("weft: accepting a control connection", "error", err)
			select {
			case <-time.After(10 * time.Millisecond):
			case <-l.ctx.Done():
			}
			continue
		}
		l.workers.Add(1)
		go l.shake(tcp)
	}
}

func (l *Listener) shake(tcp net.Conn) {
	defer l.workers.Done()
	c, err := l.reactor.accept(l.ctx, tcp)
	if err != nil {
		<-l.places
		l.reactor.log.Warn("weft: handshake failed", "peer", tcp.RemoteAddr(), "error", err)
		return
	}
	l.accepted <- c
}
