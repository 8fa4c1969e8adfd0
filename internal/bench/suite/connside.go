package suite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// connSide is one end of connections of package efa, alone in its process. The
// first side dials, the second listens.
type connSide struct {
	order
	sideOptions
	talk     talk
	reactor  *efa.Reactor
	listener *efa.Listener
	address  string    // of the peer's listener
	conn     *efa.Conn // unless the work is with many
}

// config is the default one but for what the order says.
func (s *connSide) config(d fabric.Device) *efa.Config {
	c := &efa.Config{Device: d, Logger: slog.New(slog.DiscardHandler)}
	const most = 1 << 16 // that there can be
	switch {
	case s.two:
		c.EagerLimit = -1
	case s.ungathered:
		// One message, and no more, is as long as one that has others in it
		// may be.
		c.EagerLimit = s.size
	case s.size <= most:
		c.EagerLimit = max(s.size, 4096)
	}
	if s.work == floodWork {
		c.WindowMessages = s.window
		c.WindowBytes = int64(max(s.window*s.size, 4<<20))
	}
	return c
}

func (s *connSide) run() (err error) {
	port, err := openPort(s.order, 0)
	if err != nil {
		return err
	}
	opened := deviceOf(port.Attributes())
	if s.reactor, err = efa.Open(s.config(port)); err != nil {
		return err
	}
	// Its end ends every call.
	var expired atomic.Bool
	defer time.AfterFunc(s.deadline, func() {
		expired.Store(true)
		s.reactor.Close()
	}).Stop()
	defer time.AfterFunc(s.deadline+2*time.Second, func() { os.Exit(3) }).Stop()
	defer func() { err = errors.Join(err, s.reactor.Close()) }()
	var own []byte
	if !s.first {
		if s.listener, err = s.reactor.Listen(context.Background(), loopback); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.listener.Close()) }()
		own = []byte(s.listener.Addr().String())
	}
	peer, err := s.talk.exchange(opened, own)
	if err != nil {
		return err
	}
	s.address = string(peer)
	figures, err := s.do()
	if err != nil && expired.Load() {
		err = errors.Join(errDeadline, err)
	}
	if err != nil {
		return s.talk.complain(err)
	}
	if err := s.talk.report(figures...); err != nil {
		return err
	}
	if err := s.talk.waitForEnd(); err != nil || s.conn == nil {
		return err
	}
	return s.conn.Close()
}

func (s *connSide) do() ([]int64, error) {
	if s.work == idleWork {
		return (&idler{order: s.order, talk: s.talk, watched: s.idle, connect: s.connectStream}).do()
	}
	var err error
	if s.conn, err = s.connect(); err != nil {
		return nil, err
	}
	var took times
	switch {
	case s.pingPongs() && s.over == overStream:
		took, err = streamPingPong(s.order, s.talk, s.conn.Stream())
	case s.pingPongs():
		took, err = s.pingPong()
	case s.work == floodWork && s.first:
		err = s.sendAll()
	case s.work == floodWork:
		took, err = s.receiveAll()
	default:
		err = fmt.Errorf("a connection has no work %q", s.work)
	}
	return s.figures(took), err
}

// connect dials or accepts, as the side is.
func (s *connSide) connect() (*efa.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.deadline)
	defer cancel()
	if !s.first {
		return s.listener.AcceptConn(ctx)
	}
	return s.reactor.Dial(ctx, s.address)
}

func (s *connSide) connectStream() (net.Conn, error) {
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	return c.Stream(), nil
}

// pingPong has one message each way in flight. The answer to a message is its
// number, inverted.
func (s *connSide) pingPong() (times, error) {
	ctx := context.Background()
	out, in := touched(make([]byte, s.size)), touched(make([]byte, s.size))
	if err := s.talk.waitForGo(); err != nil {
		return times{}, err
	}
	total := s.warmup + s.count
	if !s.first {
		for i := range total {
			if err := s.receive(in, uint64(i)); err != nil {
				return times{}, err
			}
			putNumber(out, ^uint64(i))
			if err := s.conn.WriteMessage(ctx, out); err != nil {
				return times{}, err
			}
		}
		return times{}, nil
	}
	watch := newStopwatch(s.order, pingPongPart)
	for i := range total {
		if i == watch.next {
			watch.mark()
		}
		putNumber(out, uint64(i))
		if err := s.conn.WriteMessage(ctx, out); err != nil {
			return times{}, err
		}
		if err := s.receive(in, ^uint64(i)); err != nil {
			return times{}, err
		}
	}
	if total == watch.next {
		watch.mark()
	}
	return watch.stop(2)
}

// receive reads the message with the number.
func (s *connSide) receive(buf []byte, number uint64) error {
	n, err := s.conn.ReadMessage(context.Background(), buf)
	if err != nil {
		return err
	}
	if n != len(buf) {
		return fmt.Errorf("a message of %d bytes instead of %d", n, len(buf))
	}
	return expectNumber(buf, number)
}
