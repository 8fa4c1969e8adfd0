package efa

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/weft-go/weft/fabric"
)

// Config says how a [Reactor] works. The zero value, and nil, work. It must not
// be changed while in use; several reactors may share it, unless it has a
// Device.
type Config struct {
	// Providers in order of preference; empty means efa, sockets. A dialing
	// side uses the listener's provider if it is one of these.
	Providers []string
	// Require forbids any provider but the first.
	Require bool
	// Device is what to drive instead of a device of one of the providers. The
	// reactor closes it.
	Device fabric.Device
	// Logger is told what was chosen, at level Info, and what peers do wrong,
	// at level Warn. nil means slog.Default().
	Logger *slog.Logger

	// MaxMessage is the longest message in bytes that is accepted from a peer,
	// and told to it. 0 means 1 GiB.
	MaxMessage int64
	// EagerLimit is the longest message in bytes that may come inside the
	// length message; what is used is the smaller one of both sides. 0 means
	// 4096, negative none.
	EagerLimit int
	// WindowMessages and WindowBytes bound what a peer may have sent on a
	// connection and this side's readers have not taken yet. A message longer
	// than half the window counts as a little more than half. 0 means 64
	// messages and 4 MiB.
	WindowMessages int
	WindowBytes    int64

	// MaxConnections bounds the connections of a reactor. 0 means 16384.
	MaxConnections int
	// MaxHandshakes bounds the handshakes that a listener has under way, the
	// connections that wait for AcceptConn included. 0 means 128.
	MaxHandshakes int
	// HandshakeTimeout bounds each handshake. 0 means 10 s.
	HandshakeTimeout time.Duration
	// PeerTimeout is how long a peer may be silent on the control connection,
	// where the system's keep-alives ask for an answer, before it counts as
	// lost. 0 means 10 s.
	PeerTimeout time.Duration
	// DrainTimeout bounds how long Close waits until the peer has everything.
	// 0 means 10 s.
	DrainTimeout time.Duration
}

// withDefaults returns a copy with every zero replaced, or says what is wrong.
func (c *Config) withDefaults() (Config, error) {
	var d Config
	if c != nil {
		d = *c
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	set(&d.MaxMessage, 1<<30)
	set(&d.EagerLimit, 4096)
	set(&d.WindowMessages, 64)
	set(&d.WindowBytes, 4<<20)
	set(&d.MaxConnections, 1<<14)
	set(&d.MaxHandshakes, 128)
	set(&d.HandshakeTimeout, 10*time.Second)
	set(&d.PeerTimeout, 10*time.Second)
	set(&d.DrainTimeout, 10*time.Second)
	d.EagerLimit = max(d.EagerLimit, 0)
	for _, limit := range []struct {
		name        string
		value, most int64
	}{
		{"MaxMessage", d.MaxMessage, 1 << 48},
		{"EagerLimit", int64(d.EagerLimit), 1 << 16},
		{"WindowMessages", int64(d.WindowMessages), 1 << 16},
		{"WindowBytes", d.WindowBytes, 1 << 40},
		{"MaxConnections", int64(d.MaxConnections), maxSlots},
		{"MaxHandshakes", int64(d.MaxHandshakes), 1 << 20},
	} {
		least := int64(1)
		if limit.name == "EagerLimit" {
			least = 0
		}
		if limit.value < least || limit.value > limit.most {
			return d, &ConfigError{Field: limit.name, Detail: fmt.Sprintf("%d is not within %d to %d", limit.value, least, limit.most)}
		}
	}
	for name, t := range map[string]time.Duration{
		"HandshakeTimeout": d.HandshakeTimeout, "PeerTimeout": d.PeerTimeout, "DrainTimeout": d.DrainTimeout,
	} {
		if t < 0 {
			return d, &ConfigError{Field: name, Detail: fmt.Sprintf("%v is negative", t)}
		}
	}
	return d, nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
