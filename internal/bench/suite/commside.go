package suite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weft-go/weft/comm"
	"github.com/weft-go/weft/efa"
	"github.com/weft-go/weft/fabric"
)

// commSide is one of two ranks of package comm, alone in its process. The first side
// has rank 0.
type commSide struct {
	order
	talk talk
}

// run goes by rendezvous if the order is for two messages, and eagerly where that can be.
func (s *commSide) run() (err error) {
	port, err := openPort(s.order, fabric.RemoteMemory)
	if err != nil {
		return err
	}
	opened := deviceOf(port.Attributes())
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.deadline, errDeadline)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	rank := 1
	if s.first {
		rank = 0
	}
	engine := &efa.Config{Device: port, Logger: quiet}
	const header, most = 64, 1 << 16
	switch {
	case s.two:
		engine.EagerLimit = header
	case s.size+header <= most:
		engine.EagerLimit = max(s.size+header, 16<<10)
	}
	world, err := comm.Open(ctx, comm.Config{
		Rank: rank, Size: 2, Logger: quiet, Engine: engine,
		Exchange: func(_ context.Context, _ string, mine []byte) ([][]byte, error) {
			peer, err := s.talk.exchange(opened, mine)
			if s.first {
				return [][]byte{mine, peer}, err
			}
			return [][]byte{peer, mine}, err
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	took, err := s.do(ctx, world)
	if err != nil {
		return s.talk.complain(err)
	}
	if err := s.talk.report(s.figures(took)...); err != nil {
		return err
	}
	return s.talk.waitForEnd()
}

func (s *commSide) do(ctx context.Context, world *comm.Comm) (times, error) {
	switch {
	case s.work == floodWork && s.first:
		return times{}, s.sendAll(ctx, world)
	case s.work == floodWork:
		return s.receiveAll(ctx, world)
	case s.work != pingPongWork:
		return times{}, fmt.Errorf("a communicator has no work %q", s.work)
	}
	if err := s.talk.waitForGo(); err != nil {
		return times{}, err
	}
	out, in := touched(make([]byte, s.size)), touched(make([]byte, s.size))
	peer := 1 - world.Rank()
	total := s.warmup + s.count
	watch := newStopwatch(s.order, pingPongPart)
	for i := range total {
		if s.first && i == watch.next {
			watch.mark()
		}
		// The answer to a message is its number, inverted.
		send, expected := uint64(i), ^uint64(i)
		if !s.first {
			send, expected = expected, send
		}
		putNumber(out, send)
		if s.first {
			if err := world.Send(ctx, out, peer, 0); err != nil {
				return times{}, err
			}
		}
		status, err := world.Recv(ctx, in, peer, 0)
		if err != nil {
			return times{}, err
		}
		if status.Length != len(in) {
			return times{}, fmt.Errorf("a message of %d bytes instead of %d", status.Length, len(in))
		}
		if err := expectNumber(in, expected); err != nil {
			return times{}, err
		}
		if !s.first {
			if err := world.Send(ctx, out, peer, 0); err != nil {
				return times{}, err
			}
		}
	}
	if !s.first {
		return times{}, nil
	}
	if total == watch.next {
		watch.mark()
	}
	return watch.stop(2)
}

// rankBenchmark is a ping-pong of two ranks, which Open MPI has as well.
func rankBenchmark(count int, limit float64) benchmark {
	b := pingPongBenchmark("P8", "shm", count, 0, baseline{"Open MPI", openMPI, limit})
	b.work = fmt.Sprintf("%d B ping-pong of two ranks, eager", messageSize)
	b.weft = perOperation(weftSide(sideOptions{over: overComm}))
	return b
}
