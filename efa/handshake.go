package efa

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/proof"
	"github.com/weft-go/weft/tagged"
)

// terms of this side for a connection.
func (r *Reactor) terms(c *Conn) *terms {
	t := &terms{
		Provider: r.attributes.Provider, Host: hostIdentity(), Address: r.address,
		EagerLimit:     uint32(r.config.EagerLimit),
		WindowMessages: uint32(r.config.WindowMessages), WindowBytes: uint64(r.config.WindowBytes),
		MaxMessage: uint64(r.config.MaxMessage), Piece: r.piece(),
		Features: r.features(),
	}
	if c != nil {
		t.Connection = c.id
	}
	return t
}

// features are those that this side offers.
func (r *Reactor) features() uint32 {
	switch {
	case len(r.rails) > 0:
		return features | featureRails
	case r.goesBeside():
		return features | featureBeside
	}
	return features
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
	if t.Provider != r.attributes.Provider {
		return fmt.Errorf("%w: the peer uses provider %s, this side %s", ErrHandshake, t.Provider, r.attributes.Provider)
	}
	if r.attributes.SameHostOnly && t.Host != hostIdentity() {
		return fmt.Errorf("%w: provider %s reaches only processes of the same host, and the peer is on another, or in another container", ErrHandshake, r.attributes.Provider)
	}
	if at := unreachable(t.Address, c.control.tcp); at != nil {
		return fmt.Errorf("%w: the peer's device has the address %v of its own host, which is another here: "+
			"open it when the network is up, or with Config.Source", ErrHandshake, at)
	}
	r.do(func() {
		if r.broken != nil {
			err = r.broken
			return
		}
		if cause := r.stalled[string(t.Address)]; cause != nil {
			err = stalledError(cause)
			return
		}
		if c.peer, err = r.insert(t.Address); err != nil {
			err = fmt.Errorf("%w: the peer's address: %w", ErrHandshake, err)
			return
		}
		c.take(t)
	})
	return err
}

func stalledError(cause error) error {
	return fmt.Errorf("%w: an earlier message to the peer has failed, and the device at it keeps the later ones; open another reactor: %w", ErrHandshake, cause)
}

// take takes over what the peer's terms say.
func (c *Conn) take(t *terms) {
	own := c.reactor
	c.remoteID = t.Connection
	c.piece = int(min(t.Piece, own.piece(), 1<<62))
	c.peerWindow = t.WindowBytes
	c.maxMessage = int64(t.MaxMessage)
	c.eagerLimit = min(int(t.EagerLimit), own.config.EagerLimit)
	c.features = own.features() & t.Features
	if c.features&featurePieces == 0 {
		c.maxMessage = min(c.maxMessage, int64(c.piece))
		c.features &^= featureRails
	}
	c.gathers = c.features&featureGather != 0
	c.credit = tagged.NewSendCredit(uint64(t.WindowMessages), t.WindowBytes)
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

// exactName is how to ask for just the provider that a listener has: tcp's own
// endpoints, and those of tcp;ofi_rxm, do not understand each other.
func exactName(provider string) string {
	if provider == "tcp" {
		return "tcp;"
	}
	return provider
}

// admit is the beginning of a handshake on the listener's side: the dialer says
// hello, and proves that it has the key if there is one. The session is nil if
// there is none.
func (r *Reactor) admit(o *opening) (*proof.Session, error) {
	_, body, err := o.read(frameHello)
	var not *NotWeftError
	if errors.As(err, &not) && o.takeTLS(not) {
		return nil, fmt.Errorf("%w: the dialer uses it, and the listener does not", ErrTLS)
	}
	if err != nil {
		return nil, err
	}
	theirs, err := decodeHello(body)
	key := r.config.Key
	switch {
	case err != nil:
		return nil, err
	case key != nil && !theirs.keyed:
		return nil, fmt.Errorf("%w: the listener requires a key, and the dialer has none", ErrUnauthorized)
	case key == nil && theirs.keyed:
		return nil, fmt.Errorf("%w: the dialer requires a key, and the listener has none", ErrUnauthorized)
	case key == nil:
		return nil, nil
	}
	challenge := proof.NewNonce()
	exporter, err := o.exporter()
	if err != nil {
		return nil, err
	}
	s := newSession(key, body, challenge[:], exporter)
	if err := o.write(frameChallenge, challenge[:]); err != nil {
		return nil, err
	}
	_, sealed, err := o.read(frameProof)
	if err != nil {
		return nil, err
	}
	rest, err := s.Open(keyLabel, sealed)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes behind the proof", ErrHandshake, len(rest))
	}
	return s, err
}

// accept is the listener's side of a handshake.
func (r *Reactor) accept(ctx context.Context, o *opening, config *tls.Config) (*Conn, error) {
	begin, waiting := time.Now(), min(r.config.HelloTimeout, r.config.HandshakeTimeout)
	limit := limit(ctx, o.Conn, begin.Add(waiting))
	var c *Conn
	err := func() error {
		if err := o.serveTLS(config); err != nil {
			return err
		}
		s, err := r.admit(o)
		if err != nil {
			return err
		}
		o.introduced()
		waiting = r.config.HandshakeTimeout
		limit.extend(begin.Add(waiting))
		c = r.newConn()
		c.control = o.control
		if err := r.enterTable(c); err != nil {
			return err
		}
		mine := r.terms(c).encode()
		if err := o.write(frameOffer, s.Seal(offerLabel, mine)); err != nil {
			return err
		}
		_, body, err := o.read(frameAnswer)
		if err != nil {
			return err
		}
		answer, err := s.Open(answerLabel, body, mine)
		if err != nil {
			return err
		}
		theirs, err := decodeTerms(answer)
		if err != nil {
			return err
		}
		if err := r.agree(c, &theirs); err != nil {
			return err
		}
		if c.features&featureRails != 0 {
			if err := r.exchangeRails(c, o, s, true, mine, answer); err != nil {
				return err
			}
		}
		c.control.came, c.control.sent = s.Frames()
		return o.write(frameReady, s.Seal(readyLabel, nil, mine, answer))
	}()
	if ended := limit.lift(); ended != nil {
		err = ended
	}
	if err != nil {
		err = overdue(err, waiting)
		r.accepting.count(err)
		o.refuse(err)
		if c != nil {
			r.withdraw(c)
		}
		o.Close()
		return nil, err
	}
	r.accepting.count(nil)
	r.start(c, o)
	return c, nil
}

// overdue names the end of the time allowed.
func overdue(err error, allowed time.Duration) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrHandshake) {
		return err
	}
	return fmt.Errorf("%w: more than %v: %w", ErrHandshakeTimeout, allowed, err)
}

// start is the end of a handshake.
func (r *Reactor) start(c *Conn, o *opening) {
	// The reactor may be ending the connection at the same time.
	r.do(func() { o.done() })
	o.control.keepAlive(r.config.PeerTimeout)
	r.retain()
	c.control.labels = r.labels.control
	c.logOpened()
	watched := false
	r.do(func() {
		r.opened(c)
		// Whoever ends the connection has it out of the watcher first, and then
		// closes it: it must not come in between.
		watched = c.over || r.watcher.add(c)
	})
	if !watched {
		go c.watch()
	}
}

// Dial connects to a listener at the host:port of its control connection. The
// device is opened for this connection alone, with the listener's provider if
// it is one that the config allows, and closed with it; programs with many
// connections open a Reactor. ctx bounds the dialing only.
//
// A *ConfigError and fabric.ErrNotSupported, in a program that was built without cgo or not
// for Linux, come as they are, before anything is dialed. All others are a *ConnError that is
// ErrHandshake, also where ctx has ended (its cause): with what the two sides did
// not agree on, ErrUnauthorized, ErrTLS or ErrHandshakeTimeout where that is the
// reason, *RefusedError with the listener's, *NotWeftError if something else
// listens there, a *net.OpError if nothing does, *fabric.ChoiceError if the
// provider cannot be used here.
func Dial(ctx context.Context, address string, config *Config) (*Conn, error) {
	c, err := config.withDefaults()
	if err != nil {
		return nil, config.abandon(err)
	}
	if c.Device == nil {
		// Whoever cannot open a device has no business with the listener.
		if err := fabric.Supported(); err != nil {
			return nil, config.abandon(err)
		}
	}
	conn, err := dial(ctx, address, c, c.openFor)
	if err != nil {
		return nil, config.abandon(err)
	}
	conn.reactor.dialing.count(nil)
	return conn, nil
}

// Dial connects to a listener at the host:port of its control connection; see
// the function Dial.
func (r *Reactor) Dial(ctx context.Context, address string) (*Conn, error) {
	if r.closed.Load() {
		return nil, &ConnError{Op: "dial", Kind: net.ErrClosed, Cause: errors.New("the reactor has been closed")}
	}
	c, err := dial(ctx, address, r.config, func(*terms, net.Conn) (*Reactor, error) { return r, nil })
	r.dialing.count(err)
	return c, err
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
	name := exactName(offer.Provider)
	if !slices.ContainsFunc(allowed, func(p string) bool { return p == name || p == coreName(name) }) {
		return nil, fmt.Errorf("%w: the listener uses provider %s, and this side allows only %s", ErrHandshake, offer.Provider, strings.Join(allowed, ", "))
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
	return dialOver(ctx, newOpening(tcp), config, config.clientTLS(address), reactor)
}

// dialOver is the dialer's side of a handshake.
func dialOver(ctx context.Context, o *opening, config Config, tls *tls.Config, reactor func(*terms, net.Conn) (*Reactor, error)) (*Conn, error) {
	limit := limit(ctx, o.Conn, time.Now().Add(config.HandshakeTimeout))
	var r *Reactor
	var c *Conn
	err := func() error {
		if err := o.dialTLS(tls); err != nil {
			return err
		}
		s, sealed, err := o.introduce(config.Key)
		if err != nil {
			return err
		}
		// Before any of it is believed.
		offer, err := s.Open(offerLabel, sealed)
		if err != nil {
			return err
		}
		theirs, err := decodeTerms(offer)
		if err != nil {
			return err
		}
		if r, err = reactor(&theirs, o.Conn); err != nil {
			return err
		}
		c = r.newConn()
		c.control = o.control
		if err := r.enterTable(c); err != nil {
			return err
		}
		if err := r.agree(c, &theirs); err != nil {
			return err
		}
		mine := r.terms(c).encode()
		if err := o.write(frameAnswer, s.Seal(answerLabel, mine, offer)); err != nil {
			return err
		}
		if c.features&featureRails != 0 {
			if err := r.exchangeRails(c, o, s, false, offer, mine); err != nil {
				return err
			}
		}
		_, ready, err := o.read(frameReady)
		if err != nil {
			return err
		}
		if ready, err = s.Open(readyLabel, ready, offer, mine); err == nil && len(ready) > 0 {
			err = fmt.Errorf("%w: a frame %d of %d bytes too many", ErrHandshake, frameReady, len(ready))
		}
		c.control.sent, c.control.came = s.Frames()
		return err
	}()
	if ended := limit.lift(); ended != nil {
		err = ended
	}
	if err == nil {
		r.start(c, o)
		return c, nil
	}
	err = overdue(err, config.HandshakeTimeout)
	o.refuse(err)
	peer := o.RemoteAddr()
	o.Close()
	if c != nil {
		r.withdraw(c)
	}
	if r != nil && r.owners.Load() == 0 {
		err = errors.Join(err, r.Close())
	}
	return nil, &ConnError{Op: "dial", Peer: peer, Kind: ErrHandshake, Cause: err}
}

// introduce is the beginning of a handshake on the dialer's side. It returns
// the offer, with the proof in front of it if there is a key.
func (o *opening) introduce(key []byte) (s *proof.Session, offer []byte, err error) {
	mine := hello{keyed: key != nil, nonce: proof.NewNonce()}
	said := mine.encode()
	if err := o.write(frameHello, said); err != nil {
		return nil, nil, err
	}
	t, body, err := o.read(frameChallenge, frameOffer)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, nil, fmt.Errorf("what listens there accepted the connection, but did not answer as weft does: %w", err)
	case err != nil:
		return nil, nil, err
	case t == frameOffer && key != nil:
		return nil, nil, fmt.Errorf("%w: this side requires a key, and the listener does not", ErrUnauthorized)
	case t == frameOffer:
		return nil, body, nil
	case key == nil:
		return nil, nil, fmt.Errorf("%w: the listener requires a key, and this side has none", ErrUnauthorized)
	case len(body) != proof.NonceSize:
		return nil, nil, fmt.Errorf("%w: a nonce of %d bytes, and not %d", ErrHandshake, len(body), proof.NonceSize)
	}
	exporter, err := o.exporter()
	if err != nil {
		return nil, nil, err
	}
	s = newSession(key, said, body, exporter)
	if err := o.write(frameProof, s.Seal(keyLabel, nil)); err != nil {
		return nil, nil, err
	}
	_, offer, err = o.read(frameOffer)
	return s, offer, err
}
