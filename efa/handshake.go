package efa

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/tagged"
)

// terms of this side for a connection.
func (r *Reactor) terms(c *Conn) *terms {
	t := &terms{
		Provider: r.attributes.Provider, Host: hostIdentity(), Address: r.address,
		EagerLimit:     uint32(r.config.EagerLimit),
		WindowMessages: uint32(r.config.WindowMessages), WindowBytes: uint64(r.config.WindowBytes),
		MaxMessage: uint64(r.config.MaxMessage),
	}
	if c != nil {
		t.Connection = c.id
	}
	return t
}

// enter gives a connection its place; leaveTable takes it back if the handshake
// fails.
func (r *Reactor) enterTable(c *Conn) (err error) {
	r.do(func() {
		switch {
		case r.broken != nil:
			err = r.broken
		case !r.table.add(c, r.config.MaxConnections):
			err = fmt.Errorf("%w: the limit is %d", ErrTooManyConnections, r.config.MaxConnections)
		}
	})
	return err
}

// agree takes in the peer's terms. From then on, messages from it are accepted.
func (r *Reactor) agree(c *Conn, t *terms) (err error) {
	if coreName(t.Provider) != coreName(r.attributes.Provider) {
		return fmt.Errorf("%w: the peer uses provider %s, this side %s", ErrHandshake, t.Provider, r.attributes.Provider)
	}
	if r.attributes.SameHostOnly && t.Host != hostIdentity() {
		return fmt.Errorf("%w: provider %s reaches only processes of the same host, and the peer is on another, or in another container", ErrHandshake, r.attributes.Provider)
	}
	r.do(func() {
		if r.broken != nil {
			err = r.broken
			return
		}
		if c.peer, err = r.insert(t.Address); err != nil {
			err = fmt.Errorf("%w: the peer's address: %w", ErrHandshake, err)
			return
		}
		c.remoteID = t.Connection
		c.maxMessage = int64(min(t.MaxMessage, r.attributes.MaxMessage))
		c.eagerLimit = min(int(t.EagerLimit), r.config.EagerLimit)
		c.credit = tagged.NewSendCredit(uint64(t.WindowMessages), t.WindowBytes)
	})
	return err
}

// withdraw undoes enterTable and agree.
func (r *Reactor) withdraw(c *Conn) {
	// Messages may have come already, and their receives been posted.
	r.do(func() { r.fail(c, net.ErrClosed, nil) })
}

func coreName(provider string) string {
	name, _, _ := strings.Cut(provider, ";")
	return name
}

// refuse tells the peer why there is no connection.
func refuse(tcp net.Conn, why error) {
	text := why.Error()
	text = text[:min(len(text), 500)]
	_, _ = tcp.Write(appendFrame(nil, frameRefusal, []byte(text)))
}

// limit gives a handshake its deadline, and ends it when ctx ends. The function
// returned lifts both, and says whether ctx had ended.
func limit(ctx context.Context, tcp net.Conn, timeout time.Duration) (lift func() error) {
	deadline := time.Now().Add(timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = tcp.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(time.Unix(1, 0)) })
	return func() error {
		if !stop() && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return tcp.SetDeadline(time.Time{})
	}
}

// accept is the listener's side of a handshake.
func (r *Reactor) accept(ctx context.Context, tcp net.Conn) (*Conn, error) {
	lift := limit(ctx, tcp, r.config.HandshakeTimeout)
	c := r.newConn()
	c.control = &control{tcp: tcp}
	err := func() error {
		if _, _, err := readFrame(tcp, frameHello); err != nil {
			return err
		}
		if err := r.enterTable(c); err != nil {
			return err
		}
		if _, err := tcp.Write(appendFrame(nil, frameOffer, r.terms(c).encode())); err != nil {
			return err
		}
		_, body, err := readFrame(tcp, frameAnswer)
		if err != nil {
			return err
		}
		theirs, err := decodeTerms(body)
		if err != nil {
			return err
		}
		if err := r.agree(c, &theirs); err != nil {
			return err
		}
		_, err = tcp.Write(appendFrame(nil, frameReady, nil))
		return err
	}()
	if err != nil {
		refuse(tcp, err)
	}
	if ended := lift(); ended != nil {
		err = ended
	}
	if err != nil {
		r.withdraw(c)
		tcp.Close()
		return nil, err
	}
	r.start(c)
	return c, nil
}

// start is the end of a handshake.
func (r *Reactor) start(c *Conn) {
	keepAlive(c.control.tcp, r.config.PeerTimeout)
	r.retain()
	go c.watch()
}

// Dial connects to a listener at the host:port of its control connection. The
// device is opened for this connection alone, with the listener's provider if
// it is one that the config allows, and closed with it; programs with many
// connections open a Reactor. ctx bounds the dialing only.
//
// Errors are of the form *ConnError: ErrHandshake with what the two sides did
// not agree on, *NotWeftError if something else listens there, a *net.OpError
// if nothing does, *fabric.ChoiceError if the provider cannot be used here.
func Dial(ctx context.Context, address string, config *Config) (*Conn, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return dial(ctx, address, c, c.openFor)
}

// Dial connects to a listener at the host:port of its control connection; see
// the function Dial.
func (r *Reactor) Dial(ctx context.Context, address string) (*Conn, error) {
	return dial(ctx, address, r.config, func(*terms, net.Conn) (*Reactor, error) { return r, nil })
}

// openFor opens a reactor that can talk to a listener.
func (c Config) openFor(offer *terms, tcp net.Conn) (*Reactor, error) {
	if c.Device != nil {
		return open(c, "")
	}
	allowed := c.Providers
	if len(allowed) == 0 {
		allowed = fabric.DefaultProviders()
	}
	if c.Require {
		allowed = allowed[:1]
	}
	name := coreName(offer.Provider)
	if !slices.ContainsFunc(allowed, func(p string) bool { return coreName(p) == name }) {
		return nil, fmt.Errorf("%w: the listener uses provider %s, and this side allows only %s", ErrHandshake, name, strings.Join(allowed, ", "))
	}
	c.Providers, c.Require = []string{name}, true
	return open(c, sourceFor(offer.Address, tcp))
}

func dial(ctx context.Context, address string, config Config, reactor func(*terms, net.Conn) (*Reactor, error)) (*Conn, error) {
	dialer := net.Dialer{Timeout: config.HandshakeTimeout}
	tcp, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, &ConnError{Op: "dial", Kind: ErrHandshake, Cause: err}
	}
	lift := limit(ctx, tcp, config.HandshakeTimeout)
	var r *Reactor
	var c *Conn
	err = func() error {
		if _, err := tcp.Write(appendFrame(nil, frameHello, []byte(helloBody))); err != nil {
			return err
		}
		_, body, err := readFrame(tcp, frameOffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("what listens there accepted the connection, but did not answer as weft does: %w", err)
		}
		if err != nil {
			return err
		}
		theirs, err := decodeTerms(body)
		if err != nil {
			return err
		}
		if r, err = reactor(&theirs, tcp); err != nil {
			return err
		}
		c = r.newConn()
		c.control = &control{tcp: tcp}
		if err := r.enterTable(c); err != nil {
			return err
		}
		if err := r.agree(c, &theirs); err != nil {
			return err
		}
		if _, err := tcp.Write(appendFrame(nil, frameAnswer, r.terms(c).encode())); err != nil {
			return err
		}
		_, _, err = readFrame(tcp, frameReady)
		return err
	}()
	if err != nil {
		var refused *RefusedError
		if !errors.As(err, &refused) {
			refuse(tcp, err)
		}
	}
	if ended := lift(); ended != nil {
		err = ended
	}
	if err == nil {
		r.start(c)
		return c, nil
	}
	peer := tcp.RemoteAddr()
	tcp.Close()
	if c != nil {
		r.withdraw(c)
	}
	if r != nil && r.owners.Load() == 0 {
		err = errors.Join(err, r.Close())
	}
	return nil, &ConnError{Op: "dial", Peer: peer, Kind: ErrHandshake, Cause: err}
}
