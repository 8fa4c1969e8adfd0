package efa

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// opening is a control connection during its handshake. It is the TCP
// connection beneath TLS, if there is any, and remembers how it began: the two
// sides may not agree on TLS, and are to learn that from each other.
type opening struct {
	net.Conn // TCP
	control  *control

	// For a listener: the peer has said something, and has said who it is.
	spoke, introduced func()

	beginning []byte // what came first, up to mostBeginning
	answered  bool   // something was sent
	wantsTLS  bool   // but may not have it yet
}

// mostBeginning is enough for a refusal.
const mostBeginning = headerSize + mostBody

func newOpening(tcp net.Conn) *opening {
	nothing := func() {}
	o := &opening{Conn: tcp, spoke: nothing, introduced: nothing}
	o.control = &control{tcp: o}
	return o
}

func (o *opening) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	if n > 0 && len(o.beginning) == 0 {
		o.spoke()
	}
	if room := mostBeginning - len(o.beginning); room > 0 {
		o.beginning = append(o.beginning, b[:min(n, room)]...)
	}
	return n, err
}

func (o *opening) Write(b []byte) (int, error) {
	o.answered = true
	return o.Conn.Write(b)
}

// done ends the opening: what follows goes through the control connection.
func (o *opening) done() {
	if o.control.beneath == nil {
		o.control.tcp = o.Conn
	}
	o.beginning = nil
}

// write sends a frame.
func (o *opening) write(t frameType, body []byte) error {
	_, err := o.control.tcp.Write(appendFrame(nil, t, body))
	return err
}

// read takes a frame.
func (o *opening) read(want ...frameType) (frameType, []byte, error) {
	t, body, err := readFrame(o.control.tcp, want...)
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" {
		// A listener looks at the dialer's certificate when TLS is complete for
		// the dialer.
		err = fmt.Errorf("%w: %w", ErrTLS, err)
	}
	return t, body, err
}

// refuse tells the peer why there is no connection, if it can be told.
func (o *opening) refuse(why error) {
	var refused *RefusedError
	if errors.As(why, &refused) {
		return // it knows
	}
	if o.wantsTLS && o.control.beneath == nil && o.answered {
		return // TLS has said it, or cannot any more
	}
	// A peer that does not take it does not hold this side up.
	_ = o.SetWriteDeadline(time.Now().Add(time.Second))
	_ = o.write(frameRefusal, encodeRefusal(why))
}

// overTLS makes the control connection one over TLS.
func (o *opening) overTLS(t *tls.Conn) error {
	o.wantsTLS = true
	err := t.Handshake()
	if err == nil {
		o.control.tcp, o.control.beneath = t, o.Conn
		return nil
	}
	var network *net.OpError
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &network) && (network.Op == "read" || network.Op == "write") {
		return err // not about TLS
	}
	return fmt.Errorf("%w: %w", ErrTLS, err)
}

// serveTLS is the listener's side of TLS, if it asks for that.
func (o *opening) serveTLS(config *tls.Config) error {
	if config == nil {
		return nil
	}
	err := o.overTLS(tls.Server(o, config))
	if err != nil && bytes.HasPrefix(o.beginning, []byte(frameMagic)) {
		return fmt.Errorf("%w: the listener requires it, and the dialer does not use it", ErrTLS)
	}
	return err
}

// dialTLS is the dialer's side of TLS, if it asks for that.
func (o *opening) dialTLS(config *tls.Config) error {
	if config == nil {
		return nil
	}
	err := o.overTLS(tls.Client(o, config))
	var header tls.RecordHeaderError
	if errors.As(err, &header) {
		// It is not TLS: then it may be a refusal, or another protocol.
		_, _, plain := readFrame(io.MultiReader(bytes.NewReader(o.beginning), o.Conn))
		return plain
	}
	return err
}

// exporter is unique to the TLS session, and nil without TLS.
func (o *opening) exporter() ([]byte, error) {
	t, ok := o.control.tcp.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	state := t.ConnectionState()
	b, err := state.ExportKeyingMaterial("EXPORTER-weft", nil, 32)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	return b, nil
}

// recordHeader is the size of what TLS puts in front of each record: a type, a
// version and a length.
const recordHeader = 5

// takeTLS tells whether something that is not a frame is the beginning of TLS,
// and takes the rest of the first record in: if it were left, the system would
// reset the connection, and the refusal with it.
func (o *opening) takeTLS(not *NotWeftError) bool {
	b := not.Got
	if len(b) < headerSize || b[0] != 22 || b[1] != 3 {
		return false
	}
	rest := recordHeader + (int64(b[3])<<8 | int64(b[4])) - int64(len(b))
	_, _ = io.CopyN(io.Discard, o.Conn, max(rest, 0))
	return true
}
