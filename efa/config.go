package efa

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weft-go/weft/fabric"
	"github.com/weft-go/weft/internal/keepalive"
	"github.com/weft-go/weft/internal/proof"
)

// choose chooses the device that the config describes.
func (c *Config) choose(source string) (*fabric.Choice, error) {
	p := fabric.Preference{Providers: c.Providers, Require: c.Require, Domains: c.Domains, Source: cmp.Or(c.Source, source), Logger: c.Logger}
	if c.RemoteMemory {
		p.Wanted = fabric.RemoteMemory
	}
	return fabric.Choose(p)
}

// Config says how a [Reactor] works. The zero value, and nil, work. It must not
// be changed while in use; several reactors may share it, unless it has a
// Device.
type Config struct {
	// Providers in order of preference; empty means efa, sockets. A dialing
	// side uses the listener's provider if it is one of these. The names are those
	// of [fabric.Preference].
	Providers []string
	// Require forbids any provider but the first.
	Require bool
	// Domains are the devices or interfaces to use, by the names that weft info and
	// fabric.Info.Domain have for them, the first one for all but rails. A provider
	// that has not got all of them is passed over. Empty means all that there are.
	Domains []string
	// Source is the address or host name of this machine that a device with IP addresses
	// is bound to. Empty means, for Listen the host that it is given, and for Dial the
	// address from which the listener is reached. Open cannot know, and neither can
	// Listen without a host: they take the address of the default route, and without
	// one what the provider has first, which on a machine with several networks may not
	// reach the others, such as that of a bridge for containers.
	Source string
	// Rails is how many devices carry the long messages of a connection, this
	// side's first one included, where the peer has several as well: a connection
	// uses as many as both have, and goes on as without where one has none. Messages
	// of 256 KiB (or less, if the device carries no more at a time) and more go in
	// pieces of that length over all of them in turn; everything else goes over the
	// first, and so does all that is attached (Reactor.Attach). A rail that fails
	// ends the connections that use it, and only these.
	//
	// The devices are those of Domains in turn, or all that the provider has; where
	// there are fewer, several rails share one, each with an endpoint of its own. On
	// providers with IP addresses all rails are on the first one's interface, unless
	// Domains has others. At most 16; 0 and 1 mean the first device alone.
	Rails int
	// RailDevices are the rails where Device is given, Rails being 0 or one more
	// than they are: of the same provider, and keeping order (fabric.Attributes).
	// What is said of Device holds for them too.
	RailDevices []fabric.Device
	// Device is what to drive instead of a device of one of the providers. The
	// reactor closes it; so do Open, Listen and Dial if they fail, whatever the
	// reason. A config with a Device is for one call only.
	Device fabric.Device
	// Logger is told what was chosen and what listens, at level Info; of each
	// connection and its counts, and of messages that belong to none, at Debug; what
	// peers do wrong, at Warn, where there is a limit to how often; and that a device
	// has failed, at Error. nil means slog.Default().
	Logger *slog.Logger

	// Key is what both sides of a connection must have, if one of them has it:
	// at least 16 bytes, at random; not a password, which whoever can connect
	// could guess at. Neither side sends it: each proves to the other that it
	// has it, and by the same proof that what it says of itself (its endpoint's
	// address, the connection's id, limits) was not changed on the way. The
	// control connection is then protected to its end. Messages are neither
	// encrypted nor signed; those of another address than the peer's are
	// dropped. nil means none.
	Key []byte
	// TLS is for the control connection, and both sides must use it or neither.
	// A listener needs a certificate in it; for a dialer, ServerName is the host
	// that is dialed unless it is set. NextProtos is not looked at. It may be
	// used together with a Key, which is then bound to the TLS session. What is
	// said above of messages holds here as well.
	TLS *tls.Config

	// MaxMessage is the longest message in bytes that is accepted from a peer,
	// and told to it. 0 means 1 GiB.
	MaxMessage int64
	// EagerLimit is the longest message in bytes that may come inside the
	// length message; what is used is the smaller one of both sides. 0 means
	// 8192, which is one packet on EFA; negative none.
	EagerLimit int
	// WindowMessages and WindowBytes bound what a peer may have sent on a
	// connection and this side's readers have not taken yet. A message longer
	// than half the window counts as a little more than half. 0 means 64
	// messages and 4 MiB.
	WindowMessages int
	WindowBytes    int64

	// MaxPending and MaxPendingBytes bound the writes of a connection that wait
	// for its reader without a goroutine of their own (WriteMessageAsync, Send,
	// SendZeroCopy). One is always allowed to wait. 0 means 4096 and 64 MiB.
	MaxPending      int
	MaxPendingBytes int64

	// MaxBufferBytes bounds the buffers that are out (Buffer, until they are given
	// back or the device is done with them), in bytes: each counts as the next power of
	// two, and 4 KiB at least. 0 means 1 GiB.
	MaxBufferBytes int64

	// MaxConnections bounds the connections of a reactor. 0 means 16384.
	MaxConnections int
	// MaxHandshakes bounds the handshakes that a listener has under way, the
	// connections that wait for AcceptConn included. When there are so many, a
	// new peer takes the place of the one that has been silent for the longest
	// time; where all have said who they are, it waits. 0 means 128.
	MaxHandshakes int
	// HelloTimeout bounds how long a listener waits until a peer has said who it
	// is: until its first frame, or with a Key until the proof of it. TLS has to
	// begin and be agreed on within the same time. 0 means 5 s.
	HelloTimeout time.Duration
	// HandshakeTimeout bounds each handshake as a whole. 0 means 10 s.
	HandshakeTimeout time.Duration
	// PeerTimeout is how long a peer's host may be silent on the control
	// connection, where the system's keep-alives ask for an answer, before the
	// peer counts as lost. They come once a second at most, so that it must be at
	// least 4 s for one of them to get lost without harm; at most it is 24 h. A
	// process that is alive and does nothing does not count as lost, unless for so
	// long it withholds payloads that it has announced, and takes the room of
	// others by that. 0 means 10 s.
	PeerTimeout time.Duration
	// DrainTimeout bounds how long Close waits until the peer has everything.
	// 0 means 10 s.
	DrainTimeout time.Duration

	// EFARetries is how often an EFA device sends a message again while the peer's
	// has no room for it, which is when its process has not driven its reactor for
	// long: 1 to 6, and then the connection ends with ErrPeerLost. 0 means for
	// ever, until the control connection says that the peer is lost.
	EFARetries int
	// EFAOnly has the EFA device carry messages between processes of one host as
	// well, which libfabric gives to shared memory otherwise. libfabric before 1.21
	// can only be told by FI_EFA_ENABLE_SHM_TRANSFER=0: without it they are
	// fabric.ErrNotSupported.
	EFAOnly bool

	// DeviceOnly has the device carry all messages. false means rings over shm, where all peers are
	// processes of this host (Reactor.SameHost): once a connection has had a few, its short
	// messages go through memory that both sides have mapped, if neither side says otherwise and
	// the system lets them. The memory of package collective is another matter.
	DeviceOnly bool

	// RemoteMemory asks for a device that peers may read and write memory of this side
	// with, if the provider has one: see Progress.Expose. The others are taken as well.
	RemoteMemory bool

	// idleCheck is how often the background looks whether callers still drive;
	// tests make it long, to see that nobody waits for it. 0 means 1 ms.
	idleCheck time.Duration
	// readersTime is how long a payload waits for a reader at least, while the device is
	// busy; see putoff.go. 0 means 1 ms.
	readersTime time.Duration
	// railPiece is the longest piece in bytes that goes over a rail; tests make it
	// short. 0 means 256 KiB.
	railPiece uint64
	// patience is how long others wait for room that a connection holds for payloads
	// of which none comes. 0 means PeerTimeout.
	patience time.Duration
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
	set(&d.EagerLimit, 8192)
	set(&d.WindowMessages, 64)
	set(&d.WindowBytes, 4<<20)
	set(&d.MaxPending, 4096)
	set(&d.MaxPendingBytes, 64<<20)
	set(&d.MaxBufferBytes, 1<<30)
	set(&d.MaxConnections, 1<<14)
	set(&d.MaxHandshakes, 128)
	set(&d.HelloTimeout, 5*time.Second)
	set(&d.HandshakeTimeout, 10*time.Second)
	set(&d.PeerTimeout, 10*time.Second)
	set(&d.DrainTimeout, 10*time.Second)
	set(&d.idleCheck, time.Millisecond)
	set(&d.readersTime, time.Millisecond)
	set(&d.railPiece, railPiece)
	set(&d.patience, d.PeerTimeout)
	d.EagerLimit = max(d.EagerLimit, 0)
	// One that is empty, but not nil, was meant to be one.
	if d.Key != nil && len(d.Key) < proof.LeastKey {
		return d, &ConfigError{Field: "Key", Detail: fmt.Sprintf("%d bytes, at least %d are needed", len(d.Key), proof.LeastKey)}
	}
	d.Key = bytes.Clone(d.Key)
	for _, limit := range []struct {
		name        string
		value, most int64
	}{
		{"MaxMessage", d.MaxMessage, 1 << 48},
		{"EagerLimit", int64(d.EagerLimit), 1 << 16},
		{"WindowMessages", int64(d.WindowMessages), 1 << 16},
		{"WindowBytes", d.WindowBytes, 1 << 40},
		{"MaxPending", int64(d.MaxPending), 1 << 30},
		{"MaxPendingBytes", d.MaxPendingBytes, 1 << 50},
		{"MaxBufferBytes", d.MaxBufferBytes, 1 << 50},
		{"MaxConnections", int64(d.MaxConnections), maxSlots},
		{"MaxHandshakes", int64(d.MaxHandshakes), 1 << 20},
		{"EFARetries", int64(d.EFARetries), fabric.RetryForever - 1},
		{"Rails", int64(d.Rails), mostRails},
	} {
		least := int64(1)
		if limit.name == "EagerLimit" || limit.name == "EFARetries" || limit.name == "Rails" {
			least = 0
		}
		if limit.value < least || limit.value > limit.most {
			return d, &ConfigError{Field: limit.name, Detail: fmt.Sprintf("%d is not within %d to %d", limit.value, least, limit.most)}
		}
	}
	if err := d.checkRails(); err != nil {
		return d, err
	}
	if d.PeerTimeout < keepalive.Least || d.PeerTimeout > keepalive.Most {
		return d, &ConfigError{Field: "PeerTimeout", Detail: fmt.Sprintf("%v is not within %v to %v", d.PeerTimeout, keepalive.Least, keepalive.Most)}
	}
	for name, t := range map[string]time.Duration{
		"HelloTimeout": d.HelloTimeout, "HandshakeTimeout": d.HandshakeTimeout, "DrainTimeout": d.DrainTimeout,
	} {
		if t < 0 {
			return d, &ConfigError{Field: name, Detail: fmt.Sprintf("%v is negative", t)}
		}
	}
	return d, nil
}

// checkRails says what is wrong with the devices that are given.
func (c *Config) checkRails() error {
	given := len(c.RailDevices)
	var detail string
	switch {
	case c.Device == nil && given > 0:
		detail = "they are for a config with a Device"
	case given >= mostRails:
		detail = fmt.Sprintf("%d, at most %d are possible", given, mostRails-1)
	case c.Device != nil && c.Rails > 1 && c.Rails != 1+given:
		detail = fmt.Sprintf("%d with a Device, where Rails is %d", given, c.Rails)
	default:
		return nil
	}
	return &ConfigError{Field: "RailDevices", Detail: detail}
}

// abandon closes the devices of a config of which nothing comes.
func (c *Config) abandon(why error) error {
	if c == nil {
		return why
	}
	err := closeAll(c.RailDevices)
	if c.Device != nil {
		err = errors.Join(c.Device.Close(), err)
	}
	if err != nil {
		return errors.Join(why, err)
	}
	return why
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
