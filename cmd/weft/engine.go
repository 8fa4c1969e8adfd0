package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// providerFlags say which provider to use.
type providerFlags struct {
	Provider []string `placeholder:"NAME" help:"Providers in order of preference, such as efa,tcp; without it efa, then sockets."`
	Require  bool     `help:"Use the first provider or fail; never fall back to another."`
	Domain   []string `placeholder:"NAME" help:"Devices or interfaces to use, as weft info names them; without it all that there are."`
}

// connectFlags are those of everything that talks to a peer.
type connectFlags struct {
	providerFlags
	securityFlags
	Rails   int           `placeholder:"N" help:"Devices that long messages go over, if the peer has several as well; up to 16."`
	Timeout time.Duration `default:"2m" help:"How long the peer may be silent."`
	JSON    bool          `help:"Print results as JSON."`
}

func (f *connectFlags) check(serving bool) error {
	if f.Timeout <= 0 {
		return &usageError{fmt.Sprintf("--timeout is %v, it must be longer than 0", f.Timeout)}
	}
	if f.Rails < 0 || f.Rails > 16 {
		return &usageError{fmt.Sprintf("--rails is %d, it must be from 0 to 16", f.Rails)}
	}
	return f.securityFlags.check(serving)
}

// mostHandshake is how long connecting, and closing, may take, however patient the
// user is with a peer that is known to be there.
const mostHandshake = 10 * time.Second

// mostWaiting bounds what peers can cost that a listener has not yet taken:
// each may have sent as much as the engine's window holds.
const mostWaiting = 32

// config is that of the engine. Messages of up to maxMessage bytes are
// accepted from the peer. serving is for who listens.
func (f *connectFlags) config(serving bool, maxMessage int64, logger *slog.Logger) (*efa.Config, error) {
	config := &efa.Config{
		Providers:        f.Provider,
		Require:          f.Require,
		Domains:          f.Domain,
		Rails:            f.Rails,
		Logger:           logger,
		MaxMessage:       maxMessage,
		MaxHandshakes:    mostWaiting,
		HandshakeTimeout: min(f.Timeout, mostHandshake),
		DrainTimeout:     min(f.Timeout, mostHandshake),
	}
	return config, f.apply(config, serving)
}

// listen begins to accept connections.
func listen(ctx context.Context, address string, config *efa.Config) (*efa.Listener, error) {
	l, err := efa.Listen(ctx, address, config)
	var network *net.OpError
	switch {
	case err == nil:
		return l, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isNoProvider(err):
		return nil, err
	case errors.As(err, &network):
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another --listen", address, systemError(network.Err))
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
}

// acceptEach has each connection served by a goroutine of the group, so many at
// a time, until a signal ends ctx.
func acceptEach(ctx context.Context, l *efa.Listener, most int, group *sync.WaitGroup, serve func(*efa.Conn)) error {
	places := make(chan struct{}, most)
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.AcceptConn(ctx)
		if errors.Is(err, errInterrupted) {
			return nil
		} else if err != nil {
			return err
		}
		group.Go(func() {
			defer func() { <-places }()
			serve(conn)
		})
	}
}

// dial connects to a peer. service is what should be running there.
func dial(ctx context.Context, address, service string, config *efa.Config) (*efa.Conn, error) {
	// For all of it: the engine gives that time to connecting, and to the
	// handshake once more.
	limited, cancel := context.WithTimeout(ctx, config.HandshakeTimeout)
	defer cancel()
	conn, err := efa.Dial(limited, address, config)
	if err == nil {
		return conn, nil
	}
	var (
		timeout net.Error
		network *net.OpError
		refused *efa.RefusedError
		foreign *efa.NotWeftError
		ended   *efa.ConnError
		why     string
	)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isNoProvider(err):
		return nil, err
	case notLetIn(address, err) != "":
		why = notLetIn(address, err)
	case errors.As(err, &foreign):
		why = fmt.Sprintf("what listens at %s is not weft; check the address, and start %s there", address, service)
	case errors.As(err, &refused):
		why = fmt.Sprintf("%s refused the connection: %s; compare weft info on both sides", address, refused.Reason)
	case errors.As(err, &timeout) && timeout.Timeout():
		why = fmt.Sprintf("%s has not answered as weft does within %v; check the address, and start %s there", address, config.HandshakeTimeout, service)
	case errors.As(err, &network) && network.Op == "dial":
		why = fmt.Sprintf("cannot reach %s: %v; check the address, and start %s there", address, systemError(network.Err), service)
	default:
		// That the two sides do not agree may be because this one has nothing
		// to offer.
		preference := fabric.Preference{Providers: config.Providers, Require: config.Require, Domains: config.Domains, Logger: config.Logger}
		if _, none := fabric.Choose(preference); isNoProvider(none) {
			return nil, none
		}
		cause := err
		if errors.As(err, &ended) && ended.Cause != nil {
			cause = ended.Cause
		}
		if errors.Is(cause, io.EOF) {
			why = fmt.Sprintf("%s closed the connection without an answer; check the address, and start %s there", address, service)
			break
		}
		why = fmt.Sprintf("cannot connect to %s: %v; compare weft info on both sides", address, cause)
	}
	return nil, &peerError{why, err}
}

// systemError leaves away the name of the system call.
func systemError(err error) error {
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

// isNoProvider says that libfabric has no provider that the flags admit, or that this
// program cannot call it.
func isNoProvider(err error) bool {
	var choice *fabric.ChoiceError
	return errors.As(err, &choice) || err != nil && fabric.Supported() != nil && errors.Is(err, fabric.ErrNotSupported)
}
