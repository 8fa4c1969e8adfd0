package efa

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/fabric"
)

// What a peer does on a connection is its first message.
const (
	echoes      = "echoes"      // sends every message back
	staysSilent = "silent"      // reads nothing, writes nothing
	writesThree = "writesThree" // writes three messages, and is silent
)

func init() { roles["peer"] = playPeer }

// playPeer listens, and serves every connection as it is asked to.
func playPeer(orders *bufio.Scanner, arguments []string) error {
	config := &Config{Providers: arguments[:1], Require: true}
	if len(arguments) > 2 {
		orders.Scan() // until it may begin
	}
	if len(arguments) > 3 {
		config.Source = arguments[3]
	}
	return playPeerWith(orders, arguments[1], config)
}

// playPeerWith is playPeer on a device of its own choice.
func playPeerWith(orders *bufio.Scanner, address string, config *Config) error {
	config.Logger = quiet
	r, err := Open(mortal(config))
	if err != nil {
		return err
	}
	l, err := r.Listen(context.Background(), address)
	if err != nil {
		return err
	}
	return errors.Join(playListener(orders, l, servePeer), r.Close())
}

// playListener says where it listens, and serves every connection until the test ends.
func playListener(orders *bufio.Scanner, l *Listener, serve func(c *Conn) error) error {
	fmt.Println("listening", l.Addr())
	go servePeers(l, serve)
	for orders.Scan() {
		if orders.Text() == freeze {
			go l.reactor.do(func() {
				fmt.Println("frozen now")
				select {}
			})
		}
	}
	return l.Close()
}

// freeze is the order to leave libfabric, and not to come back.
const freeze = "freeze"

// killAmid kills a peer in the middle of messages. shm of libfabric 1.17 would leave
// what the two share locked for good if the peer was killed while it holds that lock
// (docs/PROVIDERS.md): there the peer is outside of libfabric.
func (p *process) killAmid(t *testing.T, provider string) {
	t.Helper()
	if provider == "shm" && fabric.LibraryVersion().Major < 2 {
		p.order(t, freeze)
		p.hear(t, "frozen")
	}
	p.kill(t)
}

func servePeers(l *Listener, serve func(c *Conn) error) {
	for {
		c, err := l.AcceptConn(context.Background())
		if err != nil {
			return
		}
		go func() { _ = serve(c) }()
	}
}

func servePeer(c *Conn) error {
	ctx, buf := context.Background(), make([]byte, 1<<20)
	n, err := c.ReadMessage(ctx, buf)
	if err != nil {
		return err
	}
	switch string(buf[:n]) {
	case writesThree:
		for i := range 3 {
			if err := c.WriteMessage(ctx, message(3, i, 6000)); err != nil {
				return err
			}
		}
	case echoes:
		for {
			if n, err = c.ReadMessage(ctx, buf); err == nil {
				err = c.WriteMessage(ctx, buf[:n])
			}
			if err != nil {
				return errors.Join(err, c.Close())
			}
		}
	}
	return nil
}

// mortal has a small window, and would wait for ever for what only the end of the
// peer ends.
func mortal(c *Config) *Config {
	c.WindowMessages, c.WindowBytes, c.DrainTimeout, c.EagerLimit = 4, 64<<10, time.Hour, testsEagerLimit
	return c
}

// asked dials, and says what the peer is to do.
func asked(t *testing.T, r *Reactor, address, what string) *Conn {
	t.Helper()
	c, err := r.Dial(deadline(t), address)
	require.NoError(t, err)
	require.NoError(t, c.WriteMessage(deadline(t), []byte(what)))
	return c
}
