package efa

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-go/weft/internal/proof"
)

// Where both sides offer featureRails, the handshake has two frames more, between
// answer and ready:
//
//	              <-   rails    of the listener: how long pieces may be, the addresses
//	rails         ->            the same of the dialer
//
// Each side knows the addresses of the other before anything can come from there. The
// first of each side belong together, as many as both have.

// railTerms are what each side says of its rails.
type railTerms struct {
	piece     uint64
	addresses [][]byte
}

// mostRails bounds Config.Rails, and what a peer can say.
const mostRails = 16

func (t *railTerms) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, t.piece)
	b = append(b, byte(len(t.addresses)))
	for _, address := range t.addresses {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(address)))
		b = append(b, address...)
	}
	return b
}

func decodeRailTerms(b []byte) (t railTerms, err error) {
	wrong := func(format string, a ...any) (railTerms, error) {
		return railTerms{}, fmt.Errorf("%w: rails: "+format, append([]any{ErrHandshake}, a...)...)
	}
	if len(b) < 9 {
		return wrong("%d bytes end too early", len(b))
	}
	t.piece = binary.LittleEndian.Uint64(b)
	count := int(b[8])
	b = b[9:]
	if t.piece < tiniestPiece || count >= mostRails {
		return wrong("%d of them, with pieces of %d bytes, are out of bounds", count, t.piece)
	}
	for range count {
		if len(b) < 2 {
			return wrong("the list ends too early")
		}
		size := int(binary.LittleEndian.Uint16(b))
		if b = b[2:]; size == 0 || size > mostAddress || size > len(b) {
			return wrong("an address of %d bytes in %d", size, len(b))
		}
		t.addresses = append(t.addresses, append([]byte(nil), b[:size]...))
		b = b[size:]
	}
	if len(b) > 0 {
		return wrong("%d bytes behind the list", len(b))
	}
	return t, nil
}

// railTerms are those of the rails that work.
func (r *Reactor) railTerms() *railTerms { return r.railTermsOf(r.liveRails()) }

func (r *Reactor) liveRails() []*rail {
	var live []*rail
	for _, l := range r.rails {
		if l.broken == nil {
			live = append(live, l)
		}
	}
	return live
}

func (r *Reactor) railTermsOf(rails []*rail) *railTerms {
	t := &railTerms{piece: min(r.config.railPiece, r.piece())}
	for _, l := range rails {
		t.piece = min(t.piece, l.attributes.MaxMessage)
		t.addresses = append(t.addresses, l.address)
	}
	return t
}

// exchangeRails is the part of a handshake that is about rails. before is what the
// proofs vouch for as well.
func (r *Reactor) exchangeRails(c *Conn, o *opening, s *proof.Session, listener bool, before ...[]byte) error {
	var mine []byte
	r.do(func() {
		c.offered = r.liveRails()
		mine = r.railTermsOf(c.offered).encode()
	})
	send := func(label string) error {
		return o.write(frameRails, s.Seal(label, mine, before...))
	}
	receive := func(label string) error {
		_, body, err := o.read(frameRails)
		if err != nil {
			return err
		}
		body, err = s.Open(label, body, before...)
		if err != nil {
			return err
		}
		theirs, err := decodeRailTerms(body)
		if err != nil {
			return err
		}
		return r.agreeRails(c, &theirs)
	}
	if listener {
		if err := send(listenerRailsLabel); err != nil {
			return err
		}
		return receive(dialerRailsLabel)
	}
	if err := receive(listenerRailsLabel); err != nil {
		return err
	}
	return send(dialerRailsLabel)
}

// agreeRails takes in the peer's rails. No message has come yet.
func (r *Reactor) agreeRails(c *Conn, t *railTerms) (err error) {
	mine := r.railTermsOf(c.offered)
	n := min(len(c.offered), len(t.addresses))
	if n == 0 {
		return nil
	}
	r.do(func() {
		if r.broken != nil {
			err = r.broken
			return
		}
		rails := make([]connRail, 0, n)
		for i, l := range c.offered[:n] {
			var p *peer
			if p, err = r.insertRail(l, t.addresses[i]); err != nil {
				break
			}
			rails = append(rails, connRail{rail: l, peer: p})
		}
		// Whoever withdraws gives them back.
		c.rails = rails
		c.piece = int(min(uint64(c.piece), mine.piece, t.piece))
		for i := range c.rails {
			c.rails[i].used = true
		}
		// The background may be waiting without them.
		r.called.Store(true)
		r.device.Wake()
	})
	return err
}

func (r *Reactor) insertRail(l *rail, address []byte) (*peer, error) {
	if l.broken != nil {
		return nil, l.broken
	}
	if cause := r.stalled[string(address)]; cause != nil {
		return nil, stalledError(cause)
	}
	p, err := r.insertInto(l.device, l.peers, address)
	if err != nil {
		return nil, fmt.Errorf("%w: the address of the peer's rail: %w", ErrHandshake, err)
	}
	p.rail = l
	return p, nil
}

// leaveRails gives back what a connection has on rails, when the devices hold nothing
// of it any more.
func (r *Reactor) leaveRails(c *Conn) {
	for i := range c.rails {
		l := &c.rails[i]
		l.peer.lost = l.peer.lost || c.failure != nil
		r.remove(l.peer)
	}
}

// Rails is how many devices carry the long messages of the connection: 1, or as many
// as both sides have by their Config.Rails.
func (c *Conn) Rails() int { return 1 + len(c.rails) }
