//go:build linux

package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/efa"
)

// peerTimeout is the shortest that there is, so that tests are short.
const peerTimeout = 4 * time.Second

// patience is far beyond what anything takes on a slow machine.
const patience = 60 * time.Second

var quiet = slog.New(slog.DiscardHandler)

func engine(provider string) *efa.Config {
	return &efa.Config{
		Providers: []string{provider}, Require: true, Logger: quiet,
		PeerTimeout: peerTimeout, WindowMessages: 16, WindowBytes: 1 << 20,
		// A machine may be too busy for all these hosts.
		HelloTimeout: patience / 2, HandshakeTimeout: patience / 2, DrainTimeout: patience / 2,
	}
}

// What a dialer asks of a listener, by its first message.
const (
	echoes   = "echoes"   // sends every message back
	listens  = "listens"  // reads, and hears nothing
	keepsOff = "keepsOff" // reads nothing before the end
	writes   = "writes"   // writes what nobody reads before the end, and then listens
)

// atListener is the end of what the listener's side of a connection is called.
const atListener = " at the listener"

// early is how many messages of a flood have arrived, unread, before the fault.
const early = 5

// sizes are those of messages: about the limits of packets, and of protocols.
var sizes = []int{0, 1, 1400, 1448, 1500, 4096, 4097, 8000, 8900, 9001, 20_000, 70_000, 300_000}

// playListener serves connections until it is told to finish.
func playListener(arguments []string, orders <-chan string, say func(any)) error {
	before := holdsFirst(arguments[0])
	l, err := efa.Listen(context.Background(), arguments[1], engine(arguments[0]))
	if err != nil {
		return err
	}
	say(event{What: "ready"})
	finish := make(chan struct{})
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.AcceptConn(context.Background())
			if err != nil {
				return
			}
			served.Go(func() { serve(c, finish, say) })
		}
	})
	<-orders
	close(finish)
	err = l.Close()
	served.Wait()
	say(ended("finished", "efa", "listener", 0, errors.Join(err, before.Returned(patience/4))))
	return nil
}

func serve(c *efa.Conn, finish <-chan struct{}, say func(any)) {
	ctx, buf := context.Background(), make([]byte, 1<<20)
	n, err := c.ReadMessage(ctx, buf)
	what, count := string(buf[:n]), 0
	switch what {
	case keepsOff:
		<-finish
		count, err = drain(c, math.MaxInt)
	case writes:
		if err = pour(c, early); err == nil {
			say(event{What: "arrived"})
		}
	}
	for ; err == nil; count++ {
		if n, err = c.ReadMessage(ctx, buf); err == nil && what == echoes {
			err = c.WriteMessage(ctx, buf[:n])
		}
	}
	say(ended("ended", "efa", what+atListener, count, err))
	if errors.Is(err, io.EOF) {
		_ = c.Close()
	}
	_ = c.CloseNow()
}

// flood is how long the messages are to one that does not read.
const flood = 100_000

// pour writes so many messages of a flood, and returns when they have arrived.
func pour(c *efa.Conn, messages int) error {
	for i := range messages {
		if err := c.WriteMessage(context.Background(), fill(make([]byte, flood), 1, i)); err != nil {
			return err
		}
	}
	return c.Flush(context.Background(), efa.FlushRemote)
}

// drain reads at most so many messages of a flood. They are whole, and in order, whatever
// has become of the connection since they came.
func drain(c *efa.Conn, most int) (count int, err error) {
	buf := make([]byte, 1<<20)
	for ; count < most; count++ {
		n, err := c.ReadMessage(context.Background(), buf)
		if err != nil {
			return count, err
		}
		if !bytes.Equal(buf[:n], fill(make([]byte, flood), 1, count)) {
			return count, errNotWhole(c.RemoteAddr().String(), count, n)
		}
	}
	return count, nil
}

// dialer is a process with connections to two hosts.
type dialer struct {
	provider string
	address  string
	reactor  *efa.Reactor
	say      func(any)
	calls    sync.WaitGroup
	stopping atomic.Bool
	mu       sync.Mutex
	silent   []*efa.Conn // calls on these end with them
	fine     []*efa.Conn // of calls that have ended well

	drains  chan struct{} // closed when what had arrived is to be read
	drained chan struct{} // closed when it has been
}

// playDialer has connections to the listener that a fault is for, and one to another
// host that is to notice nothing.
func playDialer(arguments []string, orders <-chan string, say func(any)) error {
	before := holdsFirst(arguments[0])
	d := &dialer{
		provider: arguments[0], address: arguments[3], say: say,
		drains: make(chan struct{}), drained: make(chan struct{}),
	}
	var err error
	if d.reactor, err = d.newReactor(); err != nil {
		return err
	}
	victim, other := arguments[1], arguments[2]
	for _, c := range []struct {
		address, what, call string
		f                   func(c *efa.Conn) (int, error)
	}{
		{victim, listens, "read", func(c *efa.Conn) (int, error) {
			return c.ReadMessage(context.Background(), make([]byte, 1))
		}},
		{victim, echoes, "echo", d.echo},
		{victim, keepsOff, "write", func(c *efa.Conn) (count int, err error) {
			if err = pour(c, early); err == nil {
				say(event{What: "arrived"})
			}
			b := make([]byte, flood)
			for count = early; err == nil; count++ {
				err = c.WriteMessage(context.Background(), fill(b, 1, count))
			}
			return count, err
		}},
		{victim, writes, "what had arrived", func(c *efa.Conn) (int, error) {
			<-d.drains
			count, err := drain(c, early)
			close(d.drained)
			if err == nil {
				_, err = c.ReadMessage(context.Background(), make([]byte, 1))
			}
			return count, err
		}},
		{victim, listens, "stream", func(c *efa.Conn) (int, error) {
			return c.Stream().Read(make([]byte, 1))
		}},
		{other, echoes, "other host", d.echo},
	} {
		conn, err := d.dial(c.address, c.what)
		if err != nil {
			return err
		}
		if c.what != echoes {
			d.silent = append(d.silent, conn)
		}
		d.calls.Go(func() {
			count, err := c.f(conn)
			say(ended("ended", "efa", c.call, count, err))
			if err == nil {
				d.mu.Lock()
				d.fine = append(d.fine, conn)
				d.mu.Unlock()
			} else {
				_ = conn.CloseNow()
			}
		})
	}
	say(event{What: "ready"})
	for order := range orders {
		word, argument, _ := strings.Cut(order, " ")
		switch word {
		case "exchange":
			say(ended("done", "efa", "exchange", len(sizes), d.exchange(d.reactor, argument)))
		case "redial":
			d.redial(argument)
		case "finish":
			say(ended("finished", "efa", "dialer", 0, errors.Join(d.finish(), before.Returned(patience/4))))
			return nil
		}
	}
	return nil
}

func (d *dialer) newReactor() (*efa.Reactor, error) {
	c := engine(d.provider)
	c.Source = d.address
	return efa.Open(c)
}

func (d *dialer) dial(address, what string) (*efa.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := d.reactor.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return c, c.WriteMessage(ctx, []byte(what))
}

// echo has messages come back, until it is over.
func (d *dialer) echo(c *efa.Conn) (count int, err error) {
	for range paced {
		if d.stopping.Load() {
			break
		}
		if err := roundTrip(context.Background(), c, 2, count, sizes[count%len(sizes)]); err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

// paced begins a round as often as leaves the cores to others: there are many hosts on
// this machine.
func paced(yield func(round int) bool) {
	next := time.NewTicker(50 * time.Millisecond)
	defer next.Stop()
	for round := 0; yield(round); round++ {
		<-next.C
	}
}

func roundTrip(ctx context.Context, c *efa.Conn, sender, i, size int) error {
	content, back := fill(make([]byte, size), sender, i), make([]byte, size)
	if err := c.WriteMessage(ctx, content); err != nil {
		return err
	}
	n, err := c.ReadMessage(ctx, back)
	if err == nil && !bytes.Equal(content, back[:n]) {
		err = errNotWhole(c.RemoteAddr().String(), i, size)
	}
	return err
}

// exchange sends messages of all sizes over a connection of its own, in both directions.
func (d *dialer) exchange(r *efa.Reactor, address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := r.Dial(ctx, address)
	if err != nil {
		return err
	}
	if err = c.WriteMessage(ctx, []byte(echoes)); err != nil {
		return errors.Join(err, c.CloseNow())
	}
	for i, size := range sizes {
		if err := roundTrip(ctx, c, 3, i, size); err != nil {
			return errors.Join(fmt.Errorf("message of %d bytes: %w", size, err), c.CloseNow())
		}
	}
	return c.Close()
}

// redial connects to the address again: with a new reactor, which has its own connections
// to the peer's, and with the same one.
func (d *dialer) redial(address string) {
	r, err := d.newReactor()
	if err == nil {
		err = errors.Join(d.exchange(r, address), r.Close())
	}
	d.say(ended("done", "efa", "redial with a new reactor", 0, err))
	d.say(ended("done", "efa", "redial", 0, d.exchange(d.reactor, address)))
}

// finish closes everything, in order where the peer still is.
func (d *dialer) finish() error {
	d.stopping.Store(true)
	close(d.drains)
	<-d.drained
	for _, c := range d.silent {
		_ = c.CloseNow()
	}
	d.calls.Wait()
	var all error
	for _, c := range d.fine {
		all = errors.Join(all, c.Close())
	}
	return errors.Join(all, d.reactor.Close())
}
