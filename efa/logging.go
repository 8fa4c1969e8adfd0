package efa

import (
	"context"
	"errors"
	"log/slog"

	"github.com/weft-go/weft/fabric"
)

// What is logged of the lives of reactors, listeners and connections: Info what was
// chosen and what listens, Debug each connection and each message that is dropped,
// Warn what peers do wrong, at a limited rate, and Error that a device has failed.
// Every line has the provider; lines about a connection have its peer, and the id
// that this side gave it as connection. Nothing is logged on the path of a message.

// loggerFor is the logger of a reactor.
func loggerFor(log *slog.Logger, provider string) *slog.Logger {
	return log.With("provider", provider)
}

// logOpen says what was chosen.
func (r *Reactor) logOpen() {
	r.log.Info("weft: reactor opened", "endpoint", printable(r.address),
		"max_message", r.config.MaxMessage, "eager_limit", r.config.EagerLimit,
		"window_messages", r.config.WindowMessages, "window_bytes", r.config.WindowBytes,
		"max_connections", r.config.MaxConnections, "max_operations", r.attributes.MaxOperations)
	for _, l := range r.rails {
		r.log.Info("weft: rail opened", "domain", l.attributes.Domain, "endpoint", printable(l.address),
			"max_operations", l.attributes.MaxOperations)
	}
}

// logUnregistered tells, on a goroutine of its own, that an arena is copied from and to.
func (r *Reactor) logUnregistered(size int, err error) {
	go func() {
		wear(r.labels.control)
		r.warnings.log(r.log, "weft: an arena was not registered, so what is in it is copied", "bytes", size, "error", err)
	}()
}

// logClosed is the end of a reactor, with what it has carried.
func (r *Reactor) logClosed(err error) {
	s := r.Stats()
	arguments := []any{"connections", s.Opened, "dropped", s.Dropped, "turns", s.Turns, "stats", s.MessageStats}
	if err != nil {
		arguments = append(arguments, "error", err)
	}
	r.log.Info("weft: reactor closed", arguments...)
}

// logOpened logs the beginning of a connection, where its handshake ran.
func (c *Conn) logOpened() {
	if c.debugs() {
		c.reactor.log.Debug("weft: connection opened", "peer", c.RemoteAddr(), "connection", c.id,
			"max_message", c.maxMessage, "eager_limit", c.eagerLimit, "window_bytes", c.peerWindow, "rails", c.Rails())
	}
}

// logEnd logs the end of a connection, on a goroutine of its own: a slow log is not
// to hold up the progress role.
func (c *Conn) logEnd() {
	r, debug, failure := c.reactor, c.debugs(), c.failure
	violation := errors.Is(failure, ErrProtocol)
	if !debug && !violation {
		return
	}
	stats := c.messageStats()
	go func() {
		wear(r.labels.control)
		arguments := []any{"peer", c.RemoteAddr(), "connection", c.id}
		if failure != nil {
			arguments = append(arguments, "error", failure)
		}
		if violation {
			r.warnings.log(r.log, "weft: connection ended", arguments...)
		}
		if debug {
			r.log.Debug("weft: connection closed", append(arguments, "stats", stats)...)
		}
	}()
}

func (c *Conn) debugs() bool { return c.reactor.log.Enabled(context.Background(), slog.LevelDebug) }

// logDropped tells of a message that belongs to no connection.
func (r *Reactor) logDropped(done *fabric.Completion) {
	if !r.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	r.log.Debug("weft: message dropped", "tag", done.Tag, "source", done.Source, "error", done.Err)
}
