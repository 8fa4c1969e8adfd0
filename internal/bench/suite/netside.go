package suite

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"
)

// loopback is where sides listen.
const loopback = "127.0.0.1:0"

// netSide is one end of TCP connections of package net, alone in its process.
// The first side dials, the second listens.
type netSide struct {
	order
	sideOptions
	talk     talk
	listener net.Listener
	address  string // of the peer's listener
}

func (s *netSide) run() (err error) {
	defer time.AfterFunc(s.deadline+2*time.Second, func() { os.Exit(3) }).Stop()
	var own []byte
	if !s.first {
		if s.listener, err = net.Listen("tcp", loopback); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.listener.Close()) }()
		own = []byte(s.listener.Addr().String())
	}
	peer, err := s.talk.exchange(device{runtime.Version(), "net", "tcp", "loopback"}, own)
	if err != nil {
		return err
	}
	s.address = string(peer)
	figures, err := s.do()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.Join(errDeadline, err)
	}
	if err != nil {
		return err
	}
	if err := s.talk.report(figures...); err != nil {
		return err
	}
	return s.talk.waitForEnd()
}

func (s *netSide) do() ([]int64, error) {
	if s.work == idleWork {
		return (&idler{order: s.order, talk: s.talk, watched: s.idle, connect: s.connect}).do()
	}
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var took times
	switch {
	case s.pingPongs():
		took, err = streamPingPong(s.order, s.talk, c)
	case s.work == floodWork:
		took, err = s.flood(c)
	default:
		err = fmt.Errorf("TCP has no work %q", s.work)
	}
	return s.figures(took), err
}

// connect dials or accepts, as the side is.
func (s *netSide) connect() (c net.Conn, err error) {
	if s.first {
		c, err = net.DialTimeout("tcp", s.address, s.deadline)
	} else {
		c, err = s.listener.Accept()
	}
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(s.deadline))
}

// flood is messages in one direction, and the word that all have arrived.
func (s *netSide) flood(c net.Conn) (times, error) {
	buf, end := touched(make([]byte, s.size)), make([]byte, numberSize)
	if err := s.talk.waitForGo(); err != nil {
		return times{}, err
	}
	total := s.warmup + s.count
	if s.first {
		for i := range total {
			if err := writeNumber(c, buf, uint64(i)); err != nil {
				return times{}, err
			}
		}
		return times{}, readNumber(c, end, uint64(total))
	}
	watch := newStopwatch(s.order, s.floodPart())
	for i := range total {
		if err := readNumber(c, buf, uint64(i)); err != nil {
			return times{}, err
		}
		if i+1 == watch.next {
			watch.mark()
		}
	}
	took, err := watch.stop(1)
	if err != nil {
		return times{}, err
	}
	return took, writeNumber(c, end, uint64(total))
}
