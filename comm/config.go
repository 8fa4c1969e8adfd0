package comm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// Exchange hands out a value of each rank to all of them: it returns, by rank, what
// each gave for the same name. (*bootstrap.Job).Exchange is one.
type Exchange func(ctx context.Context, name string, mine []byte) ([][]byte, error)

// Config says who a rank is and how its communicators work.
type Config struct {
	// Rank is this process' place among the Size ranks of the job.
	Rank, Size int
	// Exchange is how the ranks tell each other their addresses. It may be nil for a
	// job of one.
	Exchange Exchange
	// Address is where this rank waits for the others: a host of this machine that
	// they reach, with port 0 for any. "" means 127.0.0.1, which is for jobs on one
	// machine. ":0" and "0.0.0.0:0" name no host, and are refused where there are others. The engine's device is bound to that host as well, if it has IP addresses
	// and Engine does not say where to bind it: on another interface, messages would be
	// lost without a word as soon as that goes.
	Address string
	// Name sets the names that are exchanged apart from those of another Open of the
	// same job. "" means "comm".
	Name string

	// Matching says who matches messages with receives. It is the same on all ranks.
	Matching Matching
	// HandedDown is how many receives the provider has at a time where it matches; what
	// is posted beyond waits here. It is less if the device has no room for so many. 0
	// means 256.
	HandedDown int

	// Engine is for the connections; nil means the defaults. What is 0 in it means what it
	// does to efa, but for WindowMessages, which is 256 then, Source, which is the host of
	// Address (see there), and Logger, which is that below; RemoteMemory is always on, and
	// DrainTimeout is the CloseTimeout below. Its EagerLimit, which
	// counts a header of up to 24 bytes, is the longest message that goes at once:
	// longer ones wait for their receive at the sender. 0 means 32 KiB, of which the
	// device may have room for less at once: 16 KiB over tcp of libfabric 1.x. One below 64,
	// a negative one too, is a *ConfigError. If Open fails, its Device is closed.
	Engine *efa.Config
	// NoRemoteReads has long messages sent by their senders even where receivers could
	// read them from there.
	NoRemoteReads bool
	// ReadPiece is the most that a receiver reads of a long message at once, and
	// ReadWindow how many such reads it has under way. 0 means 1 MiB and 4.
	ReadPiece, ReadWindow int
	// MaxUnexpected is how much memory the messages may take that have come before
	// their receives, in bytes; each counts 384 more than its length, which is what it
	// takes to keep one. One that waits at its sender counts these only. What the
	// connections hold back for it (Engine.WindowBytes each) is not part of it. Where the
	// provider matches, it may have as much again, of all senders together, though four
	// of the longest messages that go at once of each are always allowed. 0 means 64 MiB.
	MaxUnexpected int64
	// CloseTimeout bounds how long Close waits until the others have everything.
	// 0 means 10 s, or Engine.DrainTimeout where that is set. It goes before that one.
	CloseTimeout time.Duration
	// Logger is told of ranks that are lost. nil means slog.Default().
	Logger *slog.Logger
}

const mostRanks = 1 << 16

func (c Config) withDefaults() (Config, error) {
	if c.Size < 1 || c.Size > mostRanks {
		return c, &ConfigError{"Size", fmt.Sprintf("%d is not within 1 to %d", c.Size, mostRanks)}
	}
	if c.Rank < 0 || c.Rank >= c.Size {
		return c, &ConfigError{"Rank", fmt.Sprintf("%d is not within 0 to %d", c.Rank, c.Size-1)}
	}
	if c.Exchange == nil && c.Size > 1 {
		return c, &ConfigError{"Exchange", fmt.Sprintf("there is none, and %d ranks", c.Size)}
	}
	if c.MaxUnexpected < 0 {
		return c, &ConfigError{"MaxUnexpected", fmt.Sprintf("%d is negative", c.MaxUnexpected)}
	}
	if c.Matching > MatchByProvider {
		return c, &ConfigError{"Matching", fmt.Sprintf("%d is none", c.Matching)}
	}
	if c.HandedDown < 0 {
		return c, &ConfigError{"HandedDown", fmt.Sprintf("%d is negative", c.HandedDown)}
	}
	if c.HandedDown == 0 {
		c.HandedDown = 256
	}
	if c.Address == "" {
		c.Address = "127.0.0.1:0"
	}
	if c.Size > 1 && isAnywhere(c.Address) {
		return c, &ConfigError{"Address", fmt.Sprintf("%q is no host that others can reach", c.Address)}
	}
	host := c.host()
	if c.Name == "" {
		c.Name = "comm"
	}
	if c.ReadPiece < 0 || c.ReadWindow < 0 {
		return c, &ConfigError{"ReadPiece, ReadWindow", fmt.Sprintf("%d and %d, want more than 0, or 0", c.ReadPiece, c.ReadWindow)}
	}
	if c.ReadPiece == 0 {
		c.ReadPiece = 1 << 20
	}
	if c.ReadWindow == 0 {
		c.ReadWindow = 4
	}
	if c.MaxUnexpected == 0 {
		c.MaxUnexpected = 64 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	var engine efa.Config
	if c.Engine != nil {
		engine = *c.Engine
	}
	if engine.EagerLimit == 0 {
		engine.EagerLimit = eagerLimit
	}
	if engine.EagerLimit < leastEager {
		return c, &ConfigError{"Engine.EagerLimit", fmt.Sprintf("%d, at least %d are needed", engine.EagerLimit, leastEager)}
	}
	if engine.WindowMessages == 0 {
		engine.WindowMessages = 256
	}
	engine.RemoteMemory = true
	if engine.Source == "" && engine.Device == nil && len(engine.Domains) == 0 {
		engine.Source = host
	}
	if engine.Logger == nil {
		engine.Logger = c.Logger
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = cmp.Or(engine.DrainTimeout, 10*time.Second)
	}
	engine.DrainTimeout = c.CloseTimeout
	c.Engine = &engine
	return c, nil
}

// host is the address of this machine that Address names, if it is one.
func (c *Config) host() string {
	at, err := net.ResolveTCPAddr("tcp", c.Address)
	switch {
	case err != nil || at.IP == nil || at.IP.IsUnspecified():
		return ""
	case at.Zone != "":
		return at.IP.String() + "%" + at.Zone
	}
	return at.IP.String()
}

// isAnywhere says whether an address leaves the host open. Those who are told of such a
// one dial themselves.
func isAnywhere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.Unmap().IsUnspecified()
}

// abandon closes the devices of a Config that is refused, as efa.Open does.
func (c *Config) abandon(why error) error {
	if c.Engine == nil {
		return why
	}
	errs := []error{why}
	for _, d := range append([]fabric.Device{c.Engine.Device}, c.Engine.RailDevices...) {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// eagerLimit is about the length from which on a message is as fast by rendezvous: at 32
// KiB on shm, and beyond on sockets and the emulated efa device (weft bench --run
// 'limit.*ranks'; docs/PERFORMANCE.md). Over tcp of libfabric 1.17 the engine has messages
// of 16 KiB at most, and sends no longer ones at once.
const eagerLimit = 32 << 10

// leastEager has room for any header and something.
const leastEager = 64
